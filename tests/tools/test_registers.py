"""The Triton kernels fit the registers of two GPUs, which need not exist."""

import pytest

from .workplace import load_tool

pytest.importorskip('triton', reason='PyTorch for CUDA on Linux brings it')
pytest.importorskip('ptnt_mm.models.kernels.inner_triton', reason='Triton is too old')
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize('capability', [80, 90])
@pytest.mark.parametrize('dtype', ['bf16', 'fp32'])
def test_no_kernel_spills(dtype, capability):
    """For the widest words of `small`: 32 channels, 8 heads."""
    tool = load_tool('dev/count_registers')
    for kernel in tool.KERNELS:
        found = tool.usage(kernel, 32, 8, dtype, capability)
        assert (found['STACK'], found['LOCAL']) == (0, 0), (kernel, dtype, found)
        assert found['REG'] <= 255
