"""Inner transformers in Triton: numbers in its interpreter, machine code for two GPUs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from repository import ROOT, environment

from ptnt_mm.models import PyramidTNT

triton = pytest.importorskip('triton', reason='PyTorch for CUDA on Linux brings it')
inner_triton = pytest.importorskip('ptnt_mm.models.inner_triton')

KERNELS = ('forward_kernel', 'mlp_backward_kernel', 'attention_backward_kernel')
SMALL = [(8, 2), (16, 4), (32, 8)]
"""Channels and heads of stages 1, 2, and 3 and 4, which are equal."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize(('arch', 'stages'), [('small', '0123'), ('tiny', '01'), ('medium', '0')])
def test_numbers(arch, stages):
    """Forward and backward, with stochastic depth; padded channels in tiny and medium."""
    command = [sys.executable, 'tests/models/inner_triton_cases.py', arch, *stages]
    settings = environment(TRITON_INTERPRET='1')
    run = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    cases = json.loads(run.stdout.splitlines()[-1])
    assert len(cases) == 2 * len(stages)
    for differences in cases:
        most = {'torch.float32': 1e-5, 'torch.float16': 2e-2}[differences.pop('type')]
        assert len(differences) > 16
        assert max(differences.values()) < most, differences


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize('capability', [80, 90])
@pytest.mark.parametrize('dtype', ['bf16', 'fp32'])
@pytest.mark.parametrize(('channels', 'heads'), SMALL)
def test_no_kernel_spills(channels, heads, dtype, capability, tmp_path):
    for kernel in KERNELS:
        usage = compiled_usage(kernel, channels, heads, dtype, capability, tmp_path)
        assert (usage['STACK'], usage['LOCAL']) == (0, 0), (kernel, usage)


def compiled_usage(
    kernel: str, channels: int, heads: int, dtype: str, capability: int, folder: Path
) -> dict[str, int]:
    """Compile a kernel as for weights of the words' type; registers and bytes by name."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(inner_triton, kernel)
    width = max(inner_triton.SIDE, triton.next_power_of_2(channels))
    constants = dict(WIDTH=width, HEADS=heads, HAS_KEPT=True)
    integers = ('sentences', 'channels', 'units', 'size')
    types = dict.fromkeys(function.arg_names, f'*{dtype}') | dict.fromkeys(integers, 'i32')
    types |= dict(sums='*fp32', eps='fp32') | dict.fromkeys(constants, 'constexpr')
    signature = {name: types[name] for name in function.arg_names}
    aligned = {
        (place,): [['tt.divisibility', 16]]
        for place, name in enumerate(signature)
        if signature[name].startswith('*')
    }
    source = ASTSource(function, signature, constexprs=constants, attrs=aligned)
    target = GPUTarget('cuda', capability, 32)
    code = triton.compile(source, target=target, options=inner_triton.OPTIONS).asm['cubin']
    file = folder / f'{kernel}.cubin'
    file.write_bytes(code)
    tool = Path(triton.__file__).parent / 'backends/nvidia/bin/cuobjdump'
    report = subprocess.run([tool, '--dump-resource-usage', file], capture_output=True, text=True)
    return {name: int(number) for name, number in re.findall(r'([A-Z]+):(\d+)', report.stdout)}


def test_the_parameters_are_those_of_torch(micro_arch):
    forms = [PyramidTNT(micro_arch, inner=inner) for inner in ('torch', 'triton')]
    expected, found = (dict(form.named_parameters()) for form in forms)
    assert list(found) == list(expected)


def test_a_model_on_a_cpu_is_refused(micro_arch):
    model = PyramidTNT(micro_arch, inner='triton')
    with pytest.raises(ValueError, match='cpu'):
        model(torch.zeros(1, 3, 64, 64))


def test_tracing_takes_operators_of_pytorch(micro_arch):
    model = PyramidTNT(micro_arch, inner='triton').eval()
    expected = PyramidTNT(micro_arch).eval()
    expected.load_state_dict(model.state_dict())
    image = torch.randn(1, 3, 64, 64)
    found = torch.jit.trace(model, image, check_trace=False)(image)
    torch.testing.assert_close(found, expected(image))


@pytest.mark.parametrize('name', ['drop_rate', 'attn_drop_rate'])
def test_dropout_is_refused(micro_arch, name):
    with pytest.raises(ValueError, match='0.25'):
        PyramidTNT(micro_arch, inner='triton', **{name: 0.25})


def test_without_triton(micro_arch, monkeypatch):
    monkeypatch.setitem(sys.modules, 'ptnt_mm.models.inner_triton', None)
    PyramidTNT(micro_arch)
    with pytest.raises(ValueError, match='inner'):
        PyramidTNT(micro_arch, inner='triton')


def test_an_unknown_value(micro_arch):
    with pytest.raises(ValueError, match='tritn'):
        PyramidTNT(micro_arch, inner='tritn')


def test_stochastic_depth_draws_both_branches_at_once(micro_arch):
    """On the meta device, which needs no kernel."""
    model = PyramidTNT(micro_arch, inner='triton', drop_path_rate=0.5).to('meta').train()
    outputs = model(torch.empty(2, 3, 64, 64, device='meta'))
    sum(output.sum() for output in outputs).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
