"""Counts of launches, bytes and multiply-adds, and the table of them in the documentation."""

import re
from argparse import ArgumentTypeError
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmark.kernels import Count, count_forward, count_step
from benchmark.timing import size
from ptnt_mm.models.attention import InnerAttention, OuterAttention
from ptnt_mm.models.kernels.forms import fold_factors
from ptnt_mm.models.position_tables import GridRelativePosition

from .workplace import load_tool

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize('text', ['800*1344', '800', '0x8', '8x', '-8x8', '8x8x8'])
def test_sizes_that_are_none_are_refused_with_an_example(text: str):
    with pytest.raises(ArgumentTypeError, match='800x1344'):
        size(text)
    assert size('800x1344') == (800, 1344)


def on_meta(module: nn.Module, *shape: int) -> tuple[nn.Module, torch.Tensor]:
    return module.to('meta', torch.bfloat16), torch.empty(
        *shape, device='meta', dtype=torch.bfloat16
    )


def test_a_linear_layer_is_one_launch():
    layer, tokens = on_meta(nn.Linear(8, 4), 10, 8)
    read_and_written = 2 * (10 * 8 + 10 * 4 + 8 * 4 + 4)
    assert count_forward(layer, (tokens,)) == Count(1, read_and_written, 10 * 8 * 4)
    step = count_step(layer, (tokens,))
    assert step.multiply_adds == 3 * 10 * 8 * 4 and step.launches >= 3


def test_views_are_nothing():
    count = count_forward(
        lambda x: x.view(4, 20).t()[1:].unsqueeze(0), on_meta(nn.Identity(), 80)[1:]
    )
    assert count == Count()


def test_a_folded_attention_is_one_launch_whose_products_are_counted():
    attention, tokens = on_meta(OuterAttention(32, 2), 1, 48, 32)
    factors = GridRelativePosition((4, 4), (4, 4)).between(
        torch.empty(1, 2, 16, 16, device='meta'), (6, 8), (6, 8)
    )
    bias = fold_factors(factors, 16, torch.bfloat16)
    count = count_forward(lambda x: attention(x, (6, 8), bias), (tokens,))
    projections, pairs = 4 * 48 * 32 * 32, 2 * 48 * 48
    assert count.multiply_adds == projections + pairs * (16 + 16 + 16)
    # Queries, keys and values, two appended columns, attention, and the output.
    assert count.launches == 2 + 2 + 1 + 1


def test_words_are_multiplied_in_the_published_form():
    attention, words = on_meta(InnerAttention(8, 2), 30, 16, 8)
    count = count_forward(attention, (words,))
    assert count.multiply_adds == 30 * 16 * 8 * 8 * 4 + 2 * 30 * 16 * 16 * 4 * 2


@pytest.mark.slow
def test_the_table_in_the_documentation_is_current(capsys):
    """No launch is added unnoticed. Other versions of torch take other operators apart."""
    tool = load_tool('dev/count_kernels')
    constraints = (ROOT / 'requirements/constraints.txt').read_text()
    if not torch.__version__.startswith(re.search(r'^torch==(\S+)', constraints, re.M).group(1)):
        pytest.skip('the table is for the newest torch that is tested')
    assert tool.main([]) == 0
    assert capsys.readouterr().out.strip() in (ROOT / 'docs/research/performance.md').read_text()
