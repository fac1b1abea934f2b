"""The floor of a pass, on images so small that it takes seconds."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from ptnt_mm.benchmark import contenders, operations
from ptnt_mm.benchmark.floor import Floor, measure
from ptnt_mm.benchmark.operations import KINDS, Operations
from ptnt_mm.benchmark.timing import FORWARD, TRAINING, Setting, Times

from .workplace import load_tool

tool = load_tool('floor')


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(operations, '_BUDGET', 0.0)


def counted(run) -> dict[str, int]:
    """Operators by kind, those that occur."""
    with Operations() as found:
        run()
    assert all(seconds > 0 for kind, seconds in found.seconds().items() if found.counts()[kind])
    return {kind: count for kind, count in found.counts().items() if count}


def test_operators_of_a_small_network():
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    with torch.no_grad():
        found = counted(lambda: net(torch.randn(3, 4)))
    assert found == {'matrix products': 2, 'softmax, GELU, norms, pooling': 1}


def test_the_backward_pass_counts():
    net = nn.Linear(4, 2)
    found = counted(lambda: (net(torch.randn(3, 4)) * 2).sum().backward())
    # The product, the weights' gradient; times 2 in both directions, the sum, the bias's gradient.
    assert found == {'matrix products': 2, 'sums': 4}


def test_moving_is_no_arithmetic():
    tensor = torch.randn(2, 3)
    assert counted(lambda: torch.cat([tensor, tensor.T.contiguous().view(2, 3)]).clone()) == {}


def test_own_operators_are_looked_into():
    """The attention's kernel and the bias stand inside an operator of ours."""
    model = contenders.build('ptnt_ti').eval()
    with torch.no_grad():
        found = counted(lambda: model(torch.randn(1, 3, 64, 64)))
    blocks = sum(len(stage.blocks) for stage in model.stages)
    inner = sum(hasattr(block, 'inner_attn') for stage in model.stages for block in stage.blocks)
    assert found['fused attention'] == blocks + inner


class InputsOfExp(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator is torch.ops.aten.exp_.default:
            self.seen.append(args[0].clone())
        return operator(*args, **(kwargs or {}))


def test_operators_that_change_their_input_start_from_the_same_each_time():
    """A thousand exponentials of exponentials would be infinite, and slow."""
    with Operations() as found:
        torch.zeros(3).exp_()
    with InputsOfExp() as inputs:
        found.seconds()
    assert len(inputs.seen) >= 3
    assert all(torch.equal(values, inputs.seen[0]) for values in inputs.seen)


@pytest.mark.parametrize('mode', [FORWARD, TRAINING])
def test_measure(mode):
    found = measure('ptnt_ti', Setting(mode, (64, 64)), rounds=2)
    assert len(found.times.rounds) == 2
    assert set(found.seconds) == set(found.counts) == set(KINDS)
    assert found.counts['matrix products'] > 50 and found.seconds['matrix products'] > 0


def test_gap():
    setting = Setting(FORWARD, (8, 8))
    seconds = dict.fromkeys(KINDS, 0.2)
    floor = Floor('ptnt_s', setting, dict.fromkeys(KINDS, 3), seconds, Times((1.5, 1.0, 1.1)))
    assert floor.gap == pytest.approx(0.1)
    lines = floor.to_text().splitlines()
    assert lines[0] == f'ptnt_s: {setting}'
    assert lines[-1].split('|')[-2].strip() == '10%'


def test_command(capsys):
    arguments = ['--model', 'ptnt_ti', '--size', '64x64', '--rounds', '1', '--threads', '1']
    assert tool.main([*arguments, '--modes', FORWARD]) == 0
    printed = capsys.readouterr().out
    assert f'ptnt_ti: {FORWARD}, 64x64' in printed
    assert all(kind in printed for kind in (*KINDS, 'floor', 'the pass', 'gap'))


@pytest.mark.parametrize(
    ('name', 'message'),
    [('swin_tt', "did you mean 'swin_t'"), ('ptnt_s+compile', "take 'ptnt_s'")],
)
def test_bad_input(capsys, name, message):
    assert tool.main(['--model', name]) != 0
    assert message in capsys.readouterr().err
