"""Publishing in a Hugging Face hub: files load again, and have no traces of the machine."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hub_server import TOKEN, Hub, connect, serve

from ptnt_mm.models import PyramidTNT
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.workbench.cli import main
from ptnt_mm.workbench.export.hub import prepare, publish_to_hub
from ptnt_mm.workbench.export.privacy import check_traces, without_traces

ADDRESS = 'hf:me/cells'
CONFIG = """
default_scope = 'mmdet'
data_root = '/home/ada/data/cells/'
work_dir = '/scratch/ada/runs/1'
load_from = '/scratch/ada/start.pth'
model = dict(type='RetinaNet', backbone=dict(type='PyramidTNT', arch='tiny',
    init_cfg=dict(type='Pretrained', checkpoint='/home/ada/ptnt_ti.pth')))
train_dataloader = dict(dataset=dict(
    ann_file='annotations/train.json', root='C:\\\\Users\\\\ada\\\\x'))
vis_backends = [dict(type='WandbVisBackend', init_kwargs=dict(entity='ada'))]
homepage = 'https://ada:pass@example.org/a/b'
"""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    hub = Hub()
    with serve(hub) as address:
        connect(monkeypatch, address, tmp_path / 'cache')
        monkeypatch.setenv('HF_TOKEN', TOKEN)
        yield hub


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, PyramidTNT]:
    """A checkpoint with its config and log, and the backbone in it."""
    backbone = PyramidTNT('tiny', out_indices=(0,))
    weights = {f'backbone.{key}': weight for key, weight in backbone.state_dict().items()}
    meta = dict(
        epoch=2,
        iter=20,
        cfg=CONFIG,
        experiment_name='ada_1',
        dataset_meta=dict(classes=('red cell', 'platelet')),
    )
    file = tmp_path / 'run' / 'epoch_2.pth'
    log = file.parent / '1' / 'vis_data' / 'scalars.json'
    log.parent.mkdir(parents=True)
    lines = [
        dict(loss=1.0, step=10, epoch=1),
        {'coco/bbox_mAP': 0.1, 'step': 1},
        dict(loss=0.5, step=20, epoch=2),
        {'coco/bbox_mAP': 0.25, 'step': 2},
    ]
    log.write_text('\n'.join(map(json.dumps, lines)))
    torch.save(dict(meta=meta, state_dict=weights, optimizer=dict(state={})), file)
    return file, backbone


def test_what_is_published_loads_again(hub: Hub, run):
    file, backbone = run
    publish_to_hub(str(file), ADDRESS)
    assert set(hub.repositories['me/cells']) == {
        'README.md',
        'config.json',
        'config.py',
        'model.safetensors',
    }
    other = PyramidTNT('tiny', out_indices=(0,))
    assert not load_pretrained(other, ADDRESS).missing
    assert other.outer_pos.equal(backbone.outer_pos)
    assert set(read_checkpoint(ADDRESS)) == set(read_checkpoint(file)['state_dict'])


def test_facts_and_card(run):
    files, _ = prepare(str(run[0]), 'me/cells')
    facts = json.loads(files['config.json'])
    assert facts['classes'] == ['red cell', 'platelet']
    assert facts['metrics'] == {'coco/bbox_mAP': 0.25} and facts['epoch'] == 2
    card = files['README.md'].decode()
    for expected in (
        'object-detection',
        '| AP | 0.250 |',
        'red cell',
        'photo.jpg config.py hf:me/cells',
    ):
        assert expected in card
    assert card.count('```') == 2


def test_nothing_of_the_machine_is_published(run):
    files, changes = prepare(str(run[0]), 'me/cells')
    # Its header: among random numbers, three given letters may occur.
    files['model.safetensors'] = files['model.safetensors'].partition(b'}}')[0]
    for name, content in files.items():
        assert b'ada' not in content.replace(b'data', b'').replace(b'metadata', b''), name
    text = files['config.py'].decode()
    assert "data_root = 'cells/'" in text and "'annotations/train.json'" in text
    assert 'https://example.org/a/b' in text
    assert any(change.startswith('data_root') for change in changes)


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        ('/home/ada/x.json', 'x.json'),
        ('~/x/y/', 'y/'),
        (r'C:\Users\ada\x', 'x'),
        (r'\\server\share\x', 'x'),
        ('data/coco/', 'data/coco/'),
        ('../x', '../x'),
        ('s3://bucket/x', 's3://bucket/x'),
        ('mean / std', 'mean / std'),
        ('a /home/ada/b c', 'a b c'),
        (('/a/b', 1), ('b', 1)),
    ],
)
def test_absolute_paths_are_shortened(value, expected):
    cleaned, changes = without_traces(dict(key=value))
    assert cleaned == dict(key=expected)
    assert bool(changes) is (value != expected)


def test_names_of_the_user_and_the_host_are_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr('getpass.getuser', lambda: 'lovelace')
    monkeypatch.setattr('socket.gethostname', lambda: 'engine')
    assert len(list(check_traces("a = 'lovelace'\nb = 'engine_config'"))) == 1
    assert not list(check_traces('lovelaces'))


def test_access_tokens_are_refused():
    with pytest.raises(UserError, match='hf_xxx'):
        list(check_traces(f'token = {TOKEN!r}'))


def test_weights_are_replaced_only_on_request(hub: Hub, run):
    file = str(run[0])
    publish_to_hub(file, ADDRESS)
    before = dict(hub.repositories['me/cells'])
    with pytest.raises(UserError, match='overwrite'):
        publish_to_hub(file, ADDRESS)
    assert hub.repositories['me/cells'] == before
    publish_to_hub(file, ADDRESS, overwrite=True)


def test_a_failed_commit_publishes_nothing(hub: Hub, run):
    hub.fault = 'full'
    with pytest.raises(UserError, match='507') as caught:
        publish_to_hub(str(run[0]), ADDRESS)
    assert '\n' not in str(caught.value) and not hub.repositories['me/cells']


def test_publishing_needs_a_token(hub: Hub, run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv('HF_TOKEN')
    with pytest.raises(UserError, match='HF_TOKEN'):
        publish_to_hub(str(run[0]), ADDRESS)
    assert not hub.repositories


@pytest.mark.parametrize('address', [f'{ADDRESS}@v1', f'{ADDRESS}:a.pth', 'hf:cells'])
def test_only_a_repository_is_published_to(run, address: str):
    with pytest.raises(UserError, match='hf:'):
        publish_to_hub(str(run[0]), address)


def test_weights_alone_have_no_config(tmp_path: Path):
    file = tmp_path / 'weights.pth'
    torch.save(dict(a=torch.zeros(2)), file)
    assert 'config.py' not in prepare(str(file), 'me/cells')[0]


def test_the_command(hub: Hub, run, capsys):
    assert main.run('checkpoint', ['publish', str(run[0]), ADDRESS]) == 0
    out = capsys.readouterr().out
    assert 'data_root' in out and 'me/cells' in out
    assert 'model.safetensors' in hub.repositories['me/cells']
