"""The Triton kernels fit the registers of two GPUs, which need not exist."""

import pytest

from .workplace import load_tool

pytest.importorskip('triton', reason='PyTorch for CUDA on Linux brings it')
pytest.importorskip('ptnt_mm.models.inner_triton', reason='Triton is too old')
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SMALL = [(8, 2), (16, 4), (32, 8)]
"""Channels and heads of stages 1, 2, and 3 and 4, which are equal."""


@pytest.mark.parametrize('capability', [80, 90])
@pytest.mark.parametrize(('channels', 'heads'), SMALL)
def test_no_kernel_spills(channels, heads, capability):
    """In bfloat16; in float32, which compiles twice as long, the widest."""
    tool = load_tool('dev/count_registers')
    for dtype in ('bf16', 'fp32') if channels == 32 else ('bf16',):
        for kernel in tool.KERNELS:
            found = tool.usage(kernel, channels, heads, dtype, capability)
            assert (found['STACK'], found['LOCAL']) == (0, 0), (kernel, dtype, found)
            assert found['REG'] <= 255
