"""Recordings of hooks, compared with the network's forward pass and its eager attention."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models import CPVT, TNT, PyramidTNT
from ptnt_mm.models.position_tables import GridRelativePosition
from ptnt_mm.models.tokens import Grid
from ptnt_mm.workbench.pages.visualize.recording import Recording, record

SMALL_TNT = dict(depth=4, outer_dim=16, inner_dim=4, outer_heads=2, inner_heads=2, words=16)
IMAGE = (72, 100)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def look(model: torch.nn.Module) -> tuple[Recording, Tensor]:
    image = torch.randn(1, 3, *IMAGE)
    return record(model.eval(), model, image, (1.0, 1.0)), image


@pytest.fixture
def eager_weights(monkeypatch) -> list[Tensor]:
    """Weights of eager attention, (1, heads, N, M) for each block that runs."""
    weights = []

    def softmax(logits: Tensor, dim: int) -> Tensor:
        found = original(logits, dim)
        if len(found) == 1:  # not of words, which have a row for each sentence
            weights.append(found)
        return found

    original = Tensor.softmax
    monkeypatch.setattr(Tensor, 'softmax', softmax)
    return weights


def outer_weights(recording: Recording, with_table: bool = True) -> list[Tensor]:
    """The attention of all sentences of all blocks, class tokens first."""
    return [
        torch.stack(
            [
                block.attention([sentence], with_table)
                for sentence in range(-block.class_tokens, block.hw[0] * block.hw[1])
            ],
            dim=1,
        )[None]
        for block in recording.blocks
    ]


@pytest.mark.parametrize('form', ['eager', 'fused'])
@pytest.mark.parametrize('relative_position', ['grid', 'flat'])
def test_attention_is_what_the_eager_form_computes(
    micro_arch, eager_weights, form: str, relative_position: str
):
    options = dict(relative_position=relative_position)
    model = PyramidTNT(micro_arch, attention=form, **options)
    recording, image = look(model)
    eager = PyramidTNT(micro_arch, attention='eager', **options).eval()
    eager.load_state_dict(model.state_dict())
    eager_weights.clear()
    with torch.no_grad():
        eager(image)
    assert len(eager_weights) == sum(micro_arch['depths'])
    for theirs, ours in zip([*eager_weights], outer_weights(recording), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    without = outer_weights(recording, with_table=False)
    assert not torch.allclose(without[0], eager_weights[0], atol=1e-3)
    eager_weights.clear()
    for stage in eager.stages:
        torch.nn.init.zeros_(stage.relative_pos)
    # Earlier blocks attend differently now: only the first block gets the same input.
    with torch.no_grad():
        eager(image)
    torch.testing.assert_close(without[0], eager_weights[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('kind', [TNT, CPVT])
def test_attention_with_a_class_token(eager_weights, kind: type):
    arch = SMALL_TNT if kind is TNT else dict(depth=3, dim=16, heads=2)
    recording, _ = look(kind(arch, attention='eager'))
    for theirs, ours in zip([*eager_weights], outer_weights(recording), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize('in_slices', [False, True])
def test_words_attend_as_in_the_model(micro_arch, request, in_slices: bool):
    if in_slices:
        request.getfixturevalue('small_slices')
    recording, _ = look(PyramidTNT(micro_arch))
    for block in recording.nested():
        inner = block.module.inner_attn
        every = torch.stack([block.inner_attention(n) for n in range(len(block.words))])
        _, _, values = inner.project(block.inner_queries, block.inner_queries)
        with torch.no_grad():
            torch.testing.assert_close(
                inner.join(every @ values), inner(block.inner_queries), rtol=1e-4, atol=1e-6
            )


def put_in_place(words: Tensor, hw: tuple[int, int]) -> Tensor:
    """(N, 16, c) -> (c, 4h, 4w), one word after the other."""
    h, w = hw
    placed = torch.full((words.shape[2], 4 * h, 4 * w), torch.nan)
    for sentence in range(h * w):
        for word in range(16):
            row, column = 4 * (sentence // w) + word // 4, 4 * (sentence % w) + word % 4
            placed[:, row, column] = words[sentence, word]
    return placed


@pytest.mark.parametrize('kind', ['PyramidTNT', 'TNT'])
def test_maps_are_forward_tokens_put_in_place(micro_arch, kind: str):
    model = PyramidTNT(micro_arch) if kind == 'PyramidTNT' else TNT(SMALL_TNT, (0, 1, 2))
    recording, image = look(model)
    with torch.no_grad():
        tokens = model.forward_tokens(image)
    if kind == 'PyramidTNT':
        # After its last nested block, a stage leaves its words unchanged.
        nested = list({block.stage: block for block in recording.nested()}.values())
        shown = recording.chosen_blocks()
    else:
        nested = shown = recording.blocks
        names = [block.name for block in recording.chosen_blocks()]
        assert names == ['block 1', 'block 2', 'block 3']
    for words_of, block, (inner, outer, hw) in zip(nested, shown, tokens, strict=True):
        placed = torch.from_numpy(words_of.words_in_place().feature)
        assert torch.equal(placed, put_in_place(inner, hw))
        sentences = outer[0, block.class_tokens :].T.unflatten(1, hw)
        assert torch.equal(torch.from_numpy(block.sentences_in_place().feature), sentences)


def test_shown_blocks(micro_arch):
    names = [block.name for block in look(PyramidTNT(micro_arch))[0].chosen_blocks()]
    assert names == [
        'stage 1, block 1', 'stage 2, block 3', 'stage 3, block 4', 'stage 4, block 5'
    ]  # fmt: skip
    twelve = look(TNT(dict(SMALL_TNT, depth=12)))[0]
    assert [block.name for block in twelve.nested()] == ['block 1', 'block 6', 'block 12']


def test_tables_are_the_means_of_the_heads(micro_arch):
    recording, _ = look(PyramidTNT(micro_arch, attention='eager'))
    for block in recording.chosen_blocks():
        learned, resized = block.tables()
        assert torch.equal(learned, block.stage.relative_pos[0].mean(dim=0))
        torch.testing.assert_close(resized, block.form.bias[0].mean(dim=0))


def test_places_in_pixels_of_the_image(micro_arch):
    image = torch.randn(1, 3, 64, 96)
    model = PyramidTNT(micro_arch).eval()
    recording = record(model, model, image, (0.5, 2.0))
    assert recording.blocks[0].cell == (16.0, 4.0)
    assert recording.blocks[0].words_in_place().cell == (4.0, 1.0)


class Levels(torch.nn.Module):
    """A neck or backbone of another package."""

    def __init__(self, stride: int):
        super().__init__()
        self.pool = torch.nn.AvgPool2d(stride)

    def forward(self, image):
        image = image[0] if isinstance(image, tuple) else image
        return self.pool(image), self.pool(self.pool(image))


@pytest.mark.parametrize('in_a_row', [False, True])
def test_backbones_of_others_and_necks(in_a_row: bool):
    model = torch.nn.Module()
    model.backbone = Levels(4)
    model.neck = torch.nn.Sequential(Levels(1), Levels(2)) if in_a_row else Levels(2)
    image = torch.randn(1, 3, 32, 64)
    recording = record(model, lambda x: model.neck(model.backbone(x)), image, (0.5, 0.5))
    stages = recording.stages()
    assert recording.blocks == [] and recording.nested() == []
    assert [level.feature.shape for level in stages] == [(3, 8, 16), (3, 2, 4)]
    assert stages[0].cell == (8.0, 8.0)
    torch.testing.assert_close(torch.from_numpy(stages[0].feature), F.avg_pool2d(image, 4)[0])
    assert [level.cell for level in recording.necks][-2:] == [(16.0, 16.0), (32.0, 32.0)]
    assert len(recording.necks) == (4 if in_a_row else 2)


def test_nothing_stays_behind(micro_arch):
    model = PyramidTNT(micro_arch)
    look(model)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_attention_of_several_sentences_is_their_mean(micro_arch):
    """Of more of them than are in memory at the same time."""
    model = PyramidTNT(micro_arch).eval()
    block = record(model, model, torch.randn(1, 3, 136, 128), (1.0, 1.0)).blocks[0]
    each = torch.stack([block.attention([sentence]) for sentence in range(17 * 16)])
    torch.testing.assert_close(block.attention(range(17 * 16)), each.mean(dim=0))


class Nested(torch.nn.Module):
    """A part with nested output: maps and other tensors."""

    def forward(self, image):
        return dict(maps=[(image, image[0]), image[..., ::2]], vector=image.mean(dim=(2, 3)))


def test_maps_are_found_in_any_output_and_parts_may_not_run():
    model = torch.nn.Module()
    model.backbone, model.neck = Nested(), torch.nn.Identity()
    recording = record(model, model.backbone, torch.randn(1, 3, 4, 8), (1.0, 1.0))
    assert [level.feature.shape for level in recording.stages()] == [(3, 4, 8), (3, 4, 4)]
    assert recording.necks == []


@pytest.mark.parametrize('position', ['learned', 'relative_2d', 'relative_shaw'])
def test_the_matrix_has_the_attention_of_all_sentences(eager_weights, position: str):
    model = TNT(SMALL_TNT, position=position, inner_blocks=(0, 2), attention='eager')
    with torch.no_grad():  # tables of offsets start near 0
        for table in model.parameters(recurse=False):
            table.normal_()
    recording, _ = look(model)
    outer = [weights for weights in eager_weights if weights.shape[2] > 16]
    for block, weights in zip(recording.blocks, outer, strict=True):
        expected = weights[0, :, 1:, 1:].mean(dim=0)
        torch.testing.assert_close(block.attention_matrix(), expected)


def test_the_chosen_blocks_are_shown():
    recording, _ = look(TNT(SMALL_TNT, inner_blocks=(0, 2)))
    assert [block.name for block in recording.chosen_blocks()] == ['block 1', 'block 2', 'block 4']
    chosen = recording._replace(chosen=(4, 3))
    assert [block.name for block in chosen.chosen_blocks()] == ['block 4', 'block 3']
    assert [block.name for block in chosen.nested()] == ['block 3']


class Written(GridRelativePosition):
    """Returns the bias itself, and not its factors."""

    def between(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Tensor:
        return super().between(table, query_hw, key_hw).bias()


def test_a_table_without_factors_is_not_drawn(micro_arch, add_relative_position):
    add_relative_position('written', Written)
    recording, _ = look(PyramidTNT(micro_arch, relative_position='written', attention='eager'))
    assert [block.tables() for block in recording.blocks] == [None] * len(recording.blocks)
    assert recording.blocks[0].attention([0]).sum(dim=1).allclose(torch.ones(()))
