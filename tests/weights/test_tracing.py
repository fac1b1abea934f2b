"""What a network takes from a file is known, whatever its own code does with it."""

import copy
import re
from pathlib import Path

import pytest
import torch
from mmengine.model import BaseModule
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import interpolate

from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.tracing import trace


class Network(BaseModule):
    """A small backbone, whose weights MMEngine copies by name."""

    def __init__(self, init_cfg: dict | list[dict] | None = None, blocks: int = 2, width: int = 4):
        super().__init__(init_cfg)
        self.stem = nn.Conv2d(3, width, 3)
        self.bn = nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(blocks))
        self.table = nn.Parameter(torch.randn(1, width, 4, 4))


class Renaming(Network):
    """Reads the file by itself: it renames, joins and resizes, and ignores the rest."""

    def init_weights(self) -> None:
        """Load the file."""
        content = CheckpointLoader.load_checkpoint(self.init_cfg['checkpoint'])
        weights = {key.replace('layers.', 'blocks.'): w for key, w in content['model'].items()}
        halves = [weights.pop(f'stem.{half}') for half in ('upper', 'lower')]
        weights['stem.weight'] = torch.cat(halves)
        weights['table'] = interpolate(weights['table'], (4, 4), mode='bicubic')
        self.load_state_dict(weights, strict=False)


class ReadingWithTorch(Network):
    """Reads it with torch, or as safetensors."""

    def init_weights(self) -> None:
        """Load the file."""
        file = self.init_cfg['checkpoint']
        weights = load_file(file) if file.endswith('.safetensors') else torch.load(file)
        self.load_state_dict(weights, strict=False)


class Ignoring(Network):
    """Reads nothing."""

    def init_weights(self) -> None:
        """Draw random weights."""


class WithParts(Network):
    """Has parts that files lack: one at random, a norm, and one that starts at zero."""

    def __init__(self, init_cfg: dict | None = None):
        super().__init__(init_cfg)
        self.squeeze = nn.Linear(4, 2, bias=False)
        self.norm0 = nn.LayerNorm(4)
        self.offset = nn.Conv2d(4, 4, 1)
        nn.init.zeros_(self.offset.weight)
        nn.init.zeros_(self.offset.bias)


class Declaring(WithParts):
    """Says so of the first."""

    pretrained_may_lack = ('squeeze',)


class Whole(BaseModule):
    """A detector, of which only the backbone is needed."""

    def __init__(self, init_cfg: dict | None = None, classes: int = 2):
        super().__init__(init_cfg)
        self.backbone = Network()
        self.query = nn.Linear(8, classes)


def of_other_names(weights):
    """The file that :class:`Renaming` expects."""
    renamed = {key.replace('blocks.', 'layers.'): weight for key, weight in weights.items()}
    renamed['stem.upper'], renamed['stem.lower'] = renamed.pop('stem.weight').chunk(2)
    renamed['table'] = torch.randn(1, 4, 7, 7)
    return dict(model=renamed, optimizer=dict(state={0: dict(exp_avg=torch.ones(3))}))


def lacking(part, weights):
    return {key: weight for key, weight in weights.items() if part not in key}


def traced(tmp_path: Path, network: type, content, suffix: str = '.pth', **init):
    """The report for a network and a file; the network stays as it was."""
    file = tmp_path / f'weights{suffix}'
    save = save_file if suffix == '.safetensors' else torch.save
    save(content, file)
    part = network(init_cfg=dict(type='Pretrained', checkpoint=str(file), **init))
    before = copy.deepcopy(part.state_dict())
    try:
        return trace(part, str(file))
    finally:
        assert part.init_cfg['checkpoint'] == str(file)
        assert all(torch.equal(weight, before[key]) for key, weight in part.state_dict().items())
        assert sorted(tmp_path.iterdir()) == [file]


OWN = Network().state_dict()
HEAD = {'fc.weight': torch.ones(2, 4)}


@pytest.mark.parametrize(
    ('network', 'content', 'options', 'unused'),
    [
        (Network, OWN, {}, []),
        (Network, OWN | HEAD, {}, ['fc.weight']),
        (Network, dict(state_dict=OWN | HEAD, meta={}), {}, ['fc.weight']),
        (Network, lacking('num_batches_tracked', OWN), {}, []),
        (Network, Network(blocks=3).state_dict(), {}, ['blocks.2.weight', 'blocks.2.bias']),
        (Network, {f'net.{key}': w for key, w in OWN.items()} | HEAD, dict(prefix='net.'), None),
        (Network, OWN, dict(suffix='.safetensors'), []),
        (Renaming, of_other_names(OWN), {}, []),
        (Renaming, of_other_names(OWN | HEAD), {}, ['fc.weight']),
        (ReadingWithTorch, OWN | HEAD, {}, ['fc.weight']),
        (ReadingWithTorch, OWN | HEAD, dict(suffix='.safetensors'), ['fc.weight']),
    ],
)
def test_all_weights_come_from_the_file(tmp_path, network, content, options, unused):
    report = traced(tmp_path, network, content, **options)
    assert len(report.loaded) == 11 and not report.missing and not report.drawn
    assert unused is None or report.unused == unused


def test_several_initialisers(tmp_path):
    torch.save(OWN, tmp_path / 'weights.pth')
    init = dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.pth'))
    part = Network(init_cfg=[dict(type='Kaiming', layer='Conv2d'), init])
    assert len(trace(part, init['checkpoint']).loaded) == 11


@pytest.mark.parametrize(('network', 'drawn'), [(WithParts, ['squeeze.weight']), (Declaring, [])])
def test_parts_that_a_file_lacks(tmp_path, network, drawn):
    report = traced(tmp_path, network, OWN | HEAD)
    assert report.drawn == drawn
    parts = {key.split('.')[0] for key in report.new}
    assert parts == {'norm0', 'offset'} | ({'squeeze'} - set(drawn and ['squeeze']))


def test_other_heads_of_a_whole_model(tmp_path):
    report = traced(tmp_path, Whole, Whole(classes=5).state_dict())
    assert len(report.loaded) == 11
    with pytest.raises(CheckpointError, match='lacks all'):
        traced(tmp_path, Whole, OWN)


@pytest.mark.parametrize(
    ('network', 'content', 'reasons'),
    [
        (Network, {'layer1.0.conv1.weight': torch.ones(2, 4)}, 'lacks all .*looks like a ResNet'),
        (Network, {f'net.{key}': w for key, w in OWN.items()}, 'has net.table, net.stem.weight'),
        (Network, Network(blocks=1).state_dict(), 'lacks 2 weights: blocks.1.weight'),
        (Network, Network(width=8).state_dict(), r'stem.weight is \(8, 3, 3, 3\), the model has'),
        (Network, lacking('bn.running', OWN), 'lacks 2 weights: bn.running_mean'),
        # Another stem in place of the network's.
        (Network, lacking('stem', OWN) | {'conv1.weight': torch.ones(4, 3, 7, 7)}, 'stem.weight'),
        (Network, {'bn.weight': torch.rand(4)}, 'lacks'),
        (Renaming, OWN, "init_weights fails with KeyError: 'model'"),
        (Renaming, of_other_names(lacking('blocks.0', OWN)), 'lacks 2 weights: blocks.0.weight'),
        (ReadingWithTorch, Network(width=8).state_dict(), 'fails with RuntimeError: Error.* size'),
        (Ignoring, OWN, 'lacks all'),
        (WithParts, OWN | {'grow.weight': torch.ones(2, 4)}, 'squeeze.weight'),
        (Network, dict(meta={}), 'lacks all'),
    ],
)
def test_a_file_of_another_network_is_refused(tmp_path, network, content, reasons):
    with pytest.raises(CheckpointError, match=f'weights.pth does not fit.*{reasons}') as error:
        traced(tmp_path, network, content)
    assert '\n' not in str(error.value) and len(str(error.value)) < 900
    assert not re.search(r'/tmp\w{8}/', str(error.value))
