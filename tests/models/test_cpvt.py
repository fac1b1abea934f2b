"""CPVT: positions from content, for any size."""

import itertools
import re

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer

from ptnt_mm.models import CPVT, PlainClassifier
from ptnt_mm.models.position_tables import OffsetBiasTable, OffsetKeyTable
from ptnt_mm.models.tokens import map_to_tokens

from . import golden

ARCH = dict(depth=3, dim=16, heads=4)
POSITIONS = ['peg', 'learned', 'sinusoidal', 'relative_2d', 'relative_shaw', 'none']


def build(**options) -> CPVT:
    """A small CPVT with golden weights, in evaluation mode."""
    return golden.filled(CPVT(ARCH, pretrain_img_size=64, **options)).eval()


def pegs(model: CPVT) -> set[str]:
    return {name for name, _ in model.named_parameters() if 'peg.' in name}


@torch.inference_mode()
def test_one_set_of_weights_for_every_size():
    model = CPVT('tiny').eval()
    for hw, sides in (((224, 224), (14, 14)), ((384, 384), (24, 24)), ((200, 333), (13, 21))):
        assert model(golden.image(1, *hw))[0].shape == (1, 192, *sides)


@pytest.mark.parametrize('position', POSITIONS)
@torch.inference_mode()
def test_permuted_tokens_give_permuted_outputs_without_positions(position):
    """Permute the patches; only without positions, the outputs are permuted in the same way."""
    model, image = build(position=position), golden.image(1, 64, 64)
    order = torch.randperm(16)
    patches = image.unflatten(2, (4, 16)).unflatten(4, (4, 16)).permute(0, 2, 4, 1, 3, 5)
    mixed = patches.flatten(1, 2)[:, order].unflatten(1, (4, 4))
    mixed = mixed.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)
    found, expected = map_to_tokens(model(mixed)[0]), map_to_tokens(model(image)[0])[:, order]
    assert torch.allclose(found, expected, atol=1e-5) == (position == 'none')


@pytest.mark.parametrize('padding_mode', ['zeros', 'circular'])
@torch.inference_mode()
def test_the_zeros_around_the_map_tell_where_tokens_are(padding_mode):
    """On an image of one patch only: without a border, all its tokens are the same."""
    model = build(position=dict(type='peg', padding_mode=padding_mode))
    image = golden.image(1, 16, 16).tile(1, 1, 4, 4)
    (output,) = model(image)
    same = torch.allclose(output, output[..., :1, :1].expand_as(output), atol=1e-5)
    assert same == (padding_mode == 'circular')


@pytest.mark.parametrize('blocks', [(-1,), (0,), (0, 1, 2), (-1, 1)])
def test_pegs_follow_the_chosen_blocks(blocks):
    model = build(position=dict(type='peg', blocks=blocks))
    expected = {'peg' if i < 0 else f'blocks.{i}.peg' for i in blocks}
    assert {name.rpartition('.conv')[0] for name in pegs(model)} == expected


@torch.inference_mode()
def test_a_peg_is_its_tokens_and_a_depthwise_convolution_and_leaves_the_class_token():
    model, image = build(position=dict(type='peg', kernel_size=5)), golden.image(2, 40, 72)
    seen = {}
    peg = model.blocks[0].peg
    peg.register_forward_hook(lambda _, args, out: seen.update(tokens=args[0], out=out))
    model(image)
    assert peg.conv.weight.shape == (16, 1, 5, 5)
    tokens, out = seen['tokens'], seen['out']
    assert torch.equal(out[:, 0], tokens[:, 0])
    on_map = tokens[:, 1:].mT.unflatten(2, (3, 5))
    expected = on_map + torch.nn.functional.conv2d(
        on_map, peg.conv.weight, peg.conv.bias, padding=2, groups=16
    )
    torch.testing.assert_close(out[:, 1:].mT.unflatten(2, (3, 5)), expected)


SHORT = dict(type='CPVT', arch=ARCH, out_indices=(0,))


@torch.inference_mode()
def test_a_classifier_reads_the_class_token_or_the_mean():
    image = golden.image(2, 40, 72)
    for with_cls_token in (True, False):
        settings = dict(type='CPVT', arch=ARCH, with_cls_token=with_cls_token)
        model = PlainClassifier(settings, num_classes=7).eval()
        ((_, tokens, _),) = model.backbone.forward_tokens(image)
        read = tokens[:, 0] if with_cls_token else tokens.mean(dim=1)
        assert tokens.shape[1] == 15 + with_cls_token
        torch.testing.assert_close(model(image), model.head.fc(read))
        assert hasattr(model.backbone, 'cls_token') == with_cls_token


@pytest.mark.parametrize('backbone', [dict(type='PyramidTNT', arch='tiny'), SHORT])
def test_a_classifier_takes_no_backbone_without_its_last_norm(backbone: dict):
    with pytest.raises(ValueError, match='expected .* last block or stage, normalised'):
        PlainClassifier(backbone)


@pytest.mark.parametrize(
    ('kind', 'weights'),
    [
        ('depthwise', 9 * 16),
        ('separable', 9 * 16 + 16 * 16),
        ('four_separable', 4 * (9 * 16 + 16 * 16)),
        ('full', 9 * 16 * 16),
        ('fully_connected', 16 * 16),
    ],
)
@pytest.mark.parametrize('frozen', [False, True])
def test_kinds_of_a_peg(kind: str, weights: int, frozen: bool):
    model = build(position=dict(type='peg', kind=kind, frozen=frozen)).train()
    own = [parameter for name, parameter in model.named_parameters() if 'peg.' in name]
    assert sum(parameter.numel() for parameter in own if parameter.dim() > 1) == weights
    model(golden.image(2, 40, 72))[0].square().mean().backward()
    assert [parameter.grad is None for parameter in own] == [frozen] * len(own)


@pytest.mark.parametrize('ignored', [dict(kernel_size=5), dict(padding_mode='reflect')])
def test_a_fully_connected_peg_has_no_kernel(ignored: dict):
    with pytest.raises(ValueError, match='sees one token, and has neither; omit them'):
        build(position=dict(type='peg', kind='fully_connected', **ignored))


def test_only_a_fully_connected_peg_cannot_see_neighbours():
    for kind in ('full', 'fully_connected'):
        peg = build(position=dict(type='peg', kind=kind)).blocks[0].peg
        tokens = torch.zeros(1, 1 + 9, 16)
        tokens[0, 1 + 4] = 1  # in the middle
        changed = peg(tokens, (3, 3)) - peg(torch.zeros_like(tokens), (3, 3))
        places = [i for i in range(10) if changed[0, i].abs().max() > 1e-6]
        assert places == ([5] if kind == 'fully_connected' else list(range(1, 10)))


@torch.inference_mode()
def test_relative_tables_add_a_bias_for_each_offset():
    """Compared with a sum over pairs of tokens; the class token has none."""
    h, w, heads = 2, 3, 4
    table = torch.randn(1, (2 * h - 1) * (2 * w - 1), heads)
    position = OffsetBiasTable((h, w), (h, w), class_tokens=1)
    found = position.between(table, (h, w), (h, w))
    expected = torch.zeros(1, heads, 1 + h * w, 1 + h * w)
    for q, k in itertools.product(range(h * w), repeat=2):
        dy, dx = k // w - q // w, k % w - q % w
        expected[0, :, 1 + q, 1 + k] = table[0, (dy + h - 1) * (2 * w - 1) + dx + w - 1]
    torch.testing.assert_close(found, expected)


@torch.inference_mode()
def test_relative_keys_are_those_of_rows_and_columns():
    h, w, width = 2, 3, 4
    table, q = torch.randn(1, 2 * h - 1 + 2 * w - 1, width), torch.randn(2, 4, 1 + h * w, width)
    rows, columns = table[0, : 2 * h - 1], table[0, 2 * h - 1 :]
    position = OffsetKeyTable((h, w), (h, w), class_tokens=1)
    found = position.between(table, (h, w), (h, w)).bias(q)
    expected = torch.zeros(2, 4, 1 + h * w, 1 + h * w)
    for i, k in itertools.product(range(h * w), repeat=2):
        key = rows[k // w - i // w + h - 1] + columns[k % w - i % w + w - 1]
        expected[:, :, 1 + i, 1 + k] = q[:, :, 1 + i] @ key / width**0.5
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize('position', ['relative_2d', 'relative_shaw'])
@torch.inference_mode()
def test_relative_positions_are_resized(position):
    """For twice the grid, offsets in between are interpolated: those of the border stay."""
    model = build(position=position)
    bias = model.relative_position.between(model.relative_pos, (9, 6), (9, 6))
    again = model.relative_position.between(model.relative_pos, (9, 6), (9, 6))
    if position == 'relative_2d':
        assert bias.shape == (1, 4, 1 + 54, 1 + 54) and torch.equal(bias, again)
    else:
        assert bias.rows.shape == (9, 9, 4) and bias.columns.shape == (6, 6, 4)
    eager = build(position=position, attention='eager')
    image = golden.image(1, 144, 96)
    torch.testing.assert_close(eager(image)[0], model(image)[0])


@torch.inference_mode()
def test_outputs_are_those_of_deit_with_its_table():
    """timm's DeiT with the same weights; a dark image, so that the eps of norms matters."""
    theirs = VisionTransformer(64, embed_dim=16, depth=3, num_heads=4, num_classes=0).eval()
    ours = build(position='learned')
    weights = ours.state_dict()
    for block in range(3):
        attention = f'blocks.{block}.outer_attn'
        for kind in ('weight', 'bias'):
            parts = [weights.pop(f'{attention}.{part}.{kind}') for part in ('q', 'kv')]
            weights[f'{attention}.qkv.{kind}'] = torch.cat(parts)
    weights = {
        key.replace('outer_pos', 'pos_embed').replace('outer_', ''): value
        for key, value in weights.items()
    }
    theirs.load_state_dict(weights)
    image = golden.image(2, 64, 64) * 1e-2
    expected = theirs.forward_features(image)
    found = ours.forward_tokens(image)[-1][1]
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)


def test_parameters_are_those_of_deit_with_a_convolution_for_the_table():
    """DeiT has 5.72, 22.05 and 86.57 M, 197 tokens in its table among them."""
    deit = dict(tiny=5.717416e6, small=22.050664e6, base=86.567656e6)
    with torch.device('meta'):
        for arch, row in CPVT.archs.items():
            model = PlainClassifier(dict(type='CPVT', arch=arch))
            number = sum(p.numel() for p in model.parameters())
            assert number == deit[arch] - 197 * row['dim'] + 10 * row['dim']


def test_freezing_takes_the_pegs_with_their_blocks():
    model = build(frozen_stages=1, position=dict(type='peg', blocks=(-1, 0, 1))).train()
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    starts = 'peg.', 'blocks.0.', 'patch_embed.', 'cls_token'
    assert frozen == {name for name, _ in model.named_parameters() if name.startswith(starts)}
    assert model.get_layer_depth('blocks.0.peg.conv.weight') == (1, 5)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(position=dict(type='pge')), "unknown position 'pge': did you mean 'peg'?"),
        (dict(position=dict(type='peg', kernel=3)), "position 'peg' has no option kernel"),
        (dict(position=dict(type='none', blocks=(0,))), "'none' has no option blocks: expected"),
        (dict(position=dict(type='peg', blocks=(3,))), 'blocks of a PEG are (3,): expected some'),
        (dict(position=dict(type='peg', blocks=())), 'blocks of a PEG are ()'),
        (dict(position=dict(type='peg', kernel_size=4)), 'kernel_size of a PEG is 4: expected an'),
        (dict(arch=ARCH | dict(dim=18, heads=2), position='sinusoidal'), 'the width is 18'),
    ],
    ids=str,
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        CPVT(**dict(arch=ARCH) | options)


@pytest.mark.parametrize('out_indices', [(-1,), (0, -1)])
def test_class_tokens_in_the_place_of_maps(out_indices: tuple[int, ...]):
    model, image = build(out_indices=out_indices, out_type='cls_token'), golden.image(2, 40, 50)
    found = model(image)
    expected = [outer[:, 0] for _, outer, _ in model.forward_tokens(image)]
    assert len(found) == len(out_indices) and found[-1].shape == (2, model.out_channels[-1])
    assert all(map(torch.equal, found, expected))


def test_class_tokens_that_are_not_there():
    with pytest.raises(ValueError, match="unknown out_type 'cls': .*cls_token"):
        CPVT(ARCH, out_type='cls')
    with pytest.raises(ValueError, match='no class token, so average the map'):
        CPVT(ARCH, with_cls_token=False, out_type='cls_token')


@pytest.mark.parametrize(
    ('mode', 'kernel_size', 'least'),
    [('reflect', 3, 2), ('reflect', 5, 3), ('circular', 5, 2), ('circular', 7, 3)],
)
def test_a_grid_that_is_smaller_than_the_padding(mode, kernel_size, least):
    model = build(position=dict(type='peg', kernel_size=kernel_size, padding_mode=mode))
    model(torch.zeros(1, 3, 16 * least, 16 * least))
    message = f"'{mode}': it needs a grid of at least {least}x{least} tokens for this kernel"
    with pytest.raises(ValueError, match=message):
        model(torch.zeros(1, 3, 16 * least, 16 * (least - 1)))
