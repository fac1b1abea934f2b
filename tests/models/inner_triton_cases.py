"""The inner transformers of all stages in Triton's interpreter, against those of PyTorch.

A program, because the interpreter is chosen before Triton is imported:

    TRITON_INTERPRET=1 python tests/models/inner_triton_cases.py ARCH [STAGE ...]

Prints the largest differences to float64 as JSON, relative to each tensor's largest number.
"""

import json
import sys
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ptnt_mm.models.blocks import DropPath, NestedBlock
from ptnt_mm.models.kernels import inner_triton
from ptnt_mm.models.pyramid_tnt import ARCHS

SENTENCES = 3
inner_triton.PROGRAMS = 2  # so that a program adds the gradients of several sentences


class _Dropped(DropPath):
    """Drops the same branches in both forms: of each sentence, (2, sentences)."""

    def __init__(self):
        super().__init__(0.5)
        self.kept = torch.tensor([[0, 1, 1], [1, 0, 1]])
        self.calls = 0

    def draw(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        if shape[0] == 2:
            return self.kept.to(like.dtype)
        self.calls += 1
        return self.kept[1 - self.calls % 2].view(shape).to(like.dtype)


def cases(arch: str, stages: list[int]) -> Iterator[dict[str, float]]:
    """Differences of outputs and gradients by name, for each stage and type."""
    row = ARCHS[arch]
    for stage in stages:
        names = ('inner_dims', 'outer_dims', 'inner_heads', 'outer_heads')
        sizes = [row[name][stage] for name in names]
        # The interpreter is slow, and multiplies the bits of bfloat16 as integers.
        for dtype in (torch.float32, torch.float16) if stage == stages[0] else (torch.float32,):
            expected = results(NestedBlock(*sizes), torch.float64)
            found = results(inner_triton.TritonNestedBlock(*sizes), dtype)
            assert found.keys() == expected.keys()
            yield {
                name: float((found[name] - tensor).abs().max() / tensor.abs().max())
                for name, tensor in expected.items()
            } | {'type': str(dtype)}


def results(block: NestedBlock, dtype: torch.dtype) -> dict[str, Tensor]:
    """Outputs and gradients of all inner parameters, in float64."""
    torch.manual_seed(0)
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.3)
    channels = block.inner_mlp.fc1.in_features
    words = torch.randn(SENTENCES, 16, channels).to(dtype).requires_grad_()
    block.drop_path = _Dropped()
    outputs = block.to(dtype)._inner(words)
    torch.autograd.backward(outputs, [torch.randn(output.shape).to(dtype) for output in outputs])
    grads = {name: p.grad for name, p in block.named_parameters() if p.grad is not None}
    tensors = {'words': outputs[0], 'summary': outputs[1], 'words grad': words.grad, **grads}
    return {name: tensor.detach().double() for name, tensor in tensors.items()}


if __name__ == '__main__':
    print(json.dumps(list(cases(sys.argv[1], [int(stage) for stage in sys.argv[2:]]))))
