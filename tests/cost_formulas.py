"""Formulas for the cost of a block from the papers, to test the counter against.

They count multiplications of linear layers and attention products, and weights without biases and
norms, as arXiv 2103.00112 (sections 2.1 and 2.3) and arXiv 2102.10882 (section 3.3) do. ``n``
sentences of ``d`` channels; ``m`` words of ``c`` channels in each.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Cost of a block or a layer for one image."""

    multiply_adds: int
    parameters: int

    def __add__(self, other: 'Cost') -> 'Cost':
        """The cost of both."""
        return Cost(self.multiply_adds + other.multiply_adds, self.parameters + other.parameters)


def transformer_block(n: int, d: int) -> Cost:
    """2nd(6d + n) and 12dd: attention with 4dd weights, an MLP of ratio 4 with 8dd.

    Some print 2nd(5.5d + n): that leaves out the output projection.
    """
    return Cost(2 * n * d * (6 * d + n), 12 * d * d)


def tnt_block(n: int, m: int, c: int, d: int) -> Cost:
    """The sentences' block, n times one of the words, and the link from words to sentences."""
    words = Cost(n * transformer_block(m, c).multiply_adds, transformer_block(m, c).parameters)
    link = Cost(n * m * c * d, m * c * d)
    return transformer_block(n, d) + words + link


def peg(n: int, d: int, k: int = 3) -> Cost:
    """A depthwise convolution, as here: kkd weights, each used once for each token."""
    return Cost(n * k * k * d, k * k * d)


def separable_peg(n: int, d: int, k: int = 3) -> Cost:
    """A depthwise convolution followed by a pointwise one: dd + kkd weights."""
    return peg(n, d, k) + Cost(n * d * d, d * d)
