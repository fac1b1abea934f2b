"""The position encodings that PyramidTNT can have besides the published tables."""

import re

import pytest
import torch

from ptnt_mm.models import PyramidTNT
from ptnt_mm.models.positions import SinusoidalPosition
from ptnt_mm.weights.pretrained import load_pretrained

from . import golden

POSITIONS = ['learned', 'relative', 'sinusoidal', 'peg', 'none']
TABLES = {'learned_and_relative': (1, 4), 'learned': (1, 0), 'relative': (0, 4)}
"""Number of tables of sentences and of pairs for each; the others have none."""


@pytest.mark.parametrize('position', ['learned_and_relative', *POSITIONS])
def test_each_has_its_weights_and_trains_them(build_micro, position):
    model = build_micro(position=position)
    names = [name for name, _ in model.named_parameters()]
    found = tuple(sum(kind in name for name in names) for kind in ('outer_pos', 'relative_pos'))
    assert found == TABLES.get(position, (0, 0))
    pegs = {name.rpartition('.conv')[0] for name in names if 'peg' in name}
    assert pegs == ({f'stages.{i}.blocks.0.peg' for i in range(4)} if position == 'peg' else set())
    sum(output.square().mean() for output in model(golden.image(2, 61, 93))).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


@torch.inference_mode()
def test_the_published_one_is_the_default(build_micro):
    image = golden.image(1, 61, 93)
    named = build_micro(position='learned_and_relative').eval()(image)
    torch.testing.assert_close(build_micro().eval()(image), named, rtol=0, atol=0)


def test_the_authors_weights_load_without_their_tables(micro_arch, build_micro):
    weights = build_micro().state_dict()
    model = PyramidTNT(micro_arch, position='peg')
    report = load_pretrained(model, weights, logger='silent')
    assert report.new == [
        f'stages.{i}.blocks.0.peg.conv.{k}' for i in range(4) for k in ('weight', 'bias')
    ]
    assert set(report.unused) == {'outer_pos', *(f'stages.{i}.relative_pos' for i in range(4))}


def test_a_stage_may_have_a_peg_at_its_input(build_micro):
    model = build_micro(position=dict(type='peg', blocks=(-1,), kernel_size=5))
    names = {name for name, _ in model.named_parameters() if 'peg' in name}
    assert names == {f'stages.{i}.peg.conv.{kind}' for i in range(4) for kind in ('weight', 'bias')}


def test_pegs_follow_blocks_that_every_stage_has(build_micro):
    with pytest.raises(ValueError, match=re.escape('blocks of a PEG are (0, 1): expected some')):
        build_micro(position=dict(type='peg', blocks=(0, 1)))


@torch.inference_mode()
def test_only_the_first_stage_needs_a_width_for_sinusoids(micro_arch):
    arch = dict(micro_arch, outer_dims=(8, 10, 14, 18), outer_heads=(2, 2, 2, 2))
    outputs = PyramidTNT(arch, position='sinusoidal').eval()(golden.image(1, 61, 93))
    assert [output.shape[1] for output in outputs] == [8, 10, 14, 18]
    with pytest.raises(ValueError, match='the width is 10'):
        PyramidTNT(dict(arch, outer_dims=(10, 8, 16, 16)), position='sinusoidal')


def test_sinusoids_by_hand():
    """Half of the channels for the row, half for the column, sines before cosines."""
    position = SinusoidalPosition(8, (2, 2), class_tokens=1)
    waves = position.encode(None, (3, 5), like=torch.zeros(1))
    assert waves.shape == (1, 1 + 15, 8)
    assert not waves[:, 0].any()
    frequencies = torch.tensor([1.0, 10000**-0.5])
    row, column = 2, 3
    expected = torch.cat(
        [(row * frequencies).sin(), (row * frequencies).cos()]
        + [(column * frequencies).sin(), (column * frequencies).cos()]
    )
    torch.testing.assert_close(waves[0, 1 + row * 5 + column], expected)
