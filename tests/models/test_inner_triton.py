"""Inner transformers in Triton: numbers in its interpreter; ``tests/tools`` compiles them."""

import json
import subprocess
import sys

import pytest
import torch
from repository import ROOT, environment

from ptnt_mm.models import PyramidTNT

pytest.importorskip('triton', reason='PyTorch for CUDA on Linux brings it')
pytest.importorskip('ptnt_mm.models.kernels.inner_triton', reason='Triton is too old')


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(('arch', 'stages'), [('small', '012'), ('tiny', '0')])
def test_numbers(arch, stages):
    """Forward and backward, with stochastic depth; the channels of tiny are padded.

    The words of the last stage are as wide as those of the third.
    """
    command = [sys.executable, 'tests/models/inner_triton_cases.py', arch, *stages]
    settings = environment(TRITON_INTERPRET='1')
    run = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    cases = json.loads(run.stdout.splitlines()[-1])
    assert len(cases) == 1 + len(stages)
    for differences in cases:
        most = {'torch.float32': 1e-5, 'torch.float16': 2e-2}[differences.pop('type')]
        assert len(differences) > 16
        assert max(differences.values()) < most, differences


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
    monkeypatch.setitem(sys.modules, 'ptnt_mm.models.kernels.inner_triton', None)
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
