"""The papers' formulas against the counter and against the papers' own examples."""

import pytest
from cost_formulas import peg, separable_peg, tnt_block, transformer_block
from torch import nn

from ptnt_mm.complexity import measure_complexity
from ptnt_mm.models import CPVT, TNT

DIM, WORD_DIM, WORDS = 32, 8, 16
ARCH = dict(
    depth=1,
    outer_dim=DIM,
    inner_dim=WORD_DIM,
    outer_heads=4,
    inner_heads=2,
    words=WORDS,
)


def products(complexity, *names: str) -> int:
    """Multiply-adds of linear layers and attention products in the parts of these names."""
    parts = [part for part in complexity.parts if part.name in names]
    return sum(p.operations['linear'] + p.attention_products for p in parts)


def weights(module: nn.Module) -> int:
    """Parameters without biases and norms."""
    return sum(p.numel() for p in module.parameters() if p.dim() > 1)


def test_a_block_of_tnt_costs_what_the_paper_writes():
    """Except for the class token: it is one more sentence, but has no words."""
    model = TNT(ARCH, pretrain_img_size=64)
    found = measure_complexity(model, (64, 96))
    n = 4 * 6
    paper = tnt_block(n, WORDS, WORD_DIM, DIM)
    class_token = (
        transformer_block(n + 1, DIM).multiply_adds - transformer_block(n, DIM).multiply_adds
    )
    assert products(found, 'inner', 'outer') == paper.multiply_adds + class_token
    assert weights(model.blocks) == paper.parameters


def test_a_plain_block_is_the_outer_part():
    model = TNT(ARCH, pretrain_img_size=64)
    n = 4 * 6 + 1
    assert (
        products(measure_complexity(model, (64, 96)), 'outer')
        == transformer_block(n, DIM).multiply_adds
    )


class _OnImage(nn.Module):
    """A PEG on the pixels of an image."""

    def __init__(self, kernel_size: int):
        super().__init__()
        arch, position = dict(depth=1, dim=3, heads=1), dict(type='peg', kernel_size=kernel_size)
        self.peg = CPVT(arch, position=position, with_cls_token=False).blocks[0].peg

    def forward(self, image):
        return self.peg(image.flatten(2).mT, image.shape[2:])


@pytest.mark.parametrize('k', [3, 5])
def test_a_peg_costs_what_the_paper_writes(k):
    model = _OnImage(k)
    paper = peg(8 * 12, 3, k)
    assert measure_complexity(model, (8, 12)).total.multiply_adds == paper.multiply_adds
    assert weights(model) == paper.parameters


def test_the_papers_examples():
    """DeiT-S and TNT-S at 224 px: 196 tokens; 1.14 times the cost, and 1.09 times the weights."""
    plain, nested = transformer_block(196, 384), tnt_block(196, 16, 24, 384)
    assert nested.multiply_adds / plain.multiply_adds == pytest.approx(1.14, abs=0.005)
    assert nested.parameters / plain.parameters == pytest.approx(1.087, abs=0.0005)
    # A PEG of DeiT-tiny has 1728 weights; a separable one 38592.
    assert peg(196, 192).parameters == 1728
    assert separable_peg(196, 192).parameters == 1728 + 192 * 192
