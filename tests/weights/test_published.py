"""The table of published weights, and downloads by name from a web server on this machine."""

import hashlib
import re
import sys
from pathlib import Path

import pytest
import torch
from models.make_tnt_golden import ARCH

from ptnt_mm.models import CPVT, TNT, LegacyTNT, PlainClassifier, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.registry import MODELS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.published import (
    FILES,
    Published,
    default_cfg,
    locate,
    published_files,
    require_weights,
)
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.project import backbones


def tiny() -> TNT:
    return TNT(ARCH, pretrain_img_size=64)


@pytest.fixture
def offer(server, publish):
    """Publish a file of weights as 'tnt_x'; returns (the file that is served, the hub's folder)."""
    address, folder, hub = server

    def offer(sha256: str | None = None):
        file = folder / 'tnt_x.pth'
        if not file.exists():
            torch.save(tiny().state_dict(), file)
        row = Published('tnt_x', 80.0, url=f'{address}/tnt_x.pth', sha256=sha256)
        publish('TNT tiny', row)
        return file, hub / 'checkpoints'

    return offer


def load() -> None:
    """Load the weights as a config does."""
    init = dict(type='Pretrained', checkpoint='tnt_x')
    MODELS.build(dict(type='TNT', arch=ARCH, pretrain_img_size=64, init_cfg=init)).init_weights()


def test_names_are_unique():
    assert len(published_files()) == sum(map(len, FILES.values()))


def test_files_belong_to_variants():
    family = (PyramidTNT, TNT, LegacyTNT, CPVT)
    archs = {f'{network.__name__} {arch}' for network in family for arch in network.archs}
    assert archs >= FILES.keys()


@pytest.mark.parametrize('name', published_files())
def test_sizes_are_those_of_the_classifiers(name: str):
    file, network = published_files()[name]
    kind, arch = network.split()
    with torch.device('meta'):
        if kind == 'PyramidTNT':
            model = PyramidTNTClassifier(arch)
        else:
            model = PlainClassifier(dict(type=f'mmengine.{kind}', arch=arch))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert file.megabytes == (round(parameters * 4e-6) if file.url else None)


def test_a_name_becomes_an_address():
    assert locate('tnt_s').endswith('/releases/download/tnt/tnt_s_81.5.pth.tar')
    assert locate('tnt_s_legacy_mmpretrain').endswith('-c56ee7df.pth#sha256=c56ee7df')
    for other in ('tnt_s.pth', 'a/tnt_s', 'https://a.invalid/tnt_s', ''):
        assert locate(other) == other


@pytest.mark.parametrize(
    ('name', 'message'),
    [('ptnt_s', 'open https://pan.baidu.com/.*password v5w5'), ('cpvt_ti', 'no weights of CPVT')],
)
def test_what_cannot_be_downloaded_is_explained(name: str, message: str):
    with pytest.raises(CheckpointError, match=message):
        locate(name)


def test_new_projects_use_the_same_table():
    rows = backbones.rows()
    assert rows['tnt_s']['weights'] == 'tnt_s' and 'weights' not in rows['ptnt_s']
    for name in ('ptnt_ti', 'tnt_b'):
        assert rows[name]['mean'] == rows[name]['std'] == default_cfg(name)['mean'] == [127.5] * 3
    assert default_cfg('resnet50') == {}


def test_weights_are_downloaded_once_by_name(offer, capsys, monkeypatch):
    file, cache = offer()
    monkeypatch.setattr(sys.stderr, 'isatty', lambda: True, raising=False)
    load()
    assert '100%' in capsys.readouterr().err
    file.unlink()
    load()
    assert [kept.name[12:] for kept in cache.iterdir()] == ['-tnt_x.pth']


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_file_with_the_published_hash_is_used(offer):
    file, _ = offer()
    served = digest(file)
    offer(served[:8])
    load()


def one_line(capsys) -> str:
    """The line that a command prints for weights that it cannot get."""
    assert run('checkpoint', ['inspect', 'tnt_x']) == 1
    out, err = capsys.readouterr()
    assert out == '' and len(err.splitlines()) == 1
    return err


def test_a_wrong_hash_is_one_line_and_leaves_no_file(offer, capsys):
    file, cache = offer('0123456789abcdef')
    line = one_line(capsys)
    assert digest(file) in line and 'expected 0123456789abcdef' in line
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize('legacy', [False, True], ids=['zip', 'legacy'])
def test_a_file_that_is_cut_off_is_one_line_and_leaves_no_file(offer, capsys, legacy: bool):
    file, cache = offer()
    torch.save(tiny().state_dict(), file, _use_new_zipfile_serialization=not legacy)
    file.write_bytes(file.read_bytes()[:-1000])
    line = one_line(capsys)
    assert 'truncated' in line and 'was removed' in line
    assert list(cache.iterdir()) == []


def test_the_command_lists_every_file(capsys):
    assert run('weights', []) == 0
    out = capsys.readouterr().out
    for file, network in published_files().values():
        about = rf'{network}, top-1 {file.top_1}\b.*\n    {re.escape(file.url or "none")}'
        assert re.search(rf'^{file.name} +{about}', out, re.MULTILINE)


@pytest.mark.parametrize(
    ('missing', 'message'),
    [
        ('ptnt_s_82.0.pth.tar', 'PyramidTNT small .* open https:.* in a browser .password v5w5.'),
        ('some/where/tnt_s_81.5.pth.tar', 'TNT small are downloaded by their name, tnt_s'),
        ('ptnt_s_mine.pth', 'there is no file ptnt_s_mine.pth to start from$'),
    ],
)
def test_a_missing_file_with_the_name_of_a_published_one_has_a_source(missing: str, message: str):
    with pytest.raises(UserError, match=message):
        require_weights(missing)


@pytest.mark.parametrize(
    'fragment', ['sha256=abcdef0', 'sha256=', f'sha1={"0" * 40}', 'sha256=xyzxyzxyz', '12345678']
)
def test_a_hash_that_cannot_be_checked_is_refused(fragment: str):
    with pytest.raises(CheckpointError, match=f'#{fragment} cannot be checked: expected #sha256='):
        read_checkpoint(f'https://127.0.0.1:9/weights.pth#{fragment}')
    with pytest.raises(CheckpointError, match='expected hf:'):
        read_checkpoint(f'hf:owner/name:weights.pth#{fragment}')


def test_a_hash_in_capitals_is_compared(offer, server):
    file, _ = offer()
    digest = hashlib.sha256(file.read_bytes()).hexdigest().upper()
    address = f'{server[0]}/tnt_x.pth'
    assert read_checkpoint(f'{address}#sha256={digest}').keys() == tiny().state_dict().keys()
    with pytest.raises(CheckpointError, match='its SHA-256 is'):
        read_checkpoint(f'{address}#sha256={"F" * 64}')
