"""Publishing in a Hugging Face hub: files load again, and have no traces of the machine."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hub_server import TOKEN, Hub, connect, serve
from mmengine.config import Config
from quick_mmengine import lay_out

from ptnt_mm.models import PyramidTNT
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.workbench.cli import main

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


def publish(file: Path, *words: str, address: str = ADDRESS) -> int:
    """Run the command; returns its exit status."""
    return main.run('checkpoint', ['publish', str(file), address, *words])


def publish_config(folder: Path, text: str) -> int:
    """Publish a checkpoint with this config and a single weight."""
    torch.save(dict(meta=dict(cfg=text), state_dict=dict(a=torch.zeros(2))), folder / 'a.pth')
    return publish(folder / 'a.pth')


def test_what_is_published_loads_again(hub: Hub, run, capsys: pytest.CaptureFixture):
    file, backbone = run
    assert publish(file) == 0
    assert re.search('^published http.*/me/cells$', capsys.readouterr().out, re.MULTILINE)
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


def test_facts_and_card(hub: Hub, run):
    publish(run[0])
    files = hub.repositories['me/cells']
    facts = json.loads(files['config.json'])
    assert facts['classes'] == ['red cell', 'platelet']
    assert facts['metrics'] == {'coco/bbox_mAP': 0.25} and facts['epoch'] == 2
    card = files['README.md'].decode()
    for expected in (
        'object-detection',
        '| Metric | Value |\n| --- | ---: |\n| AP | 0.250 |\n',
        'red cell',
        'photo.jpg config.py hf:me/cells',
    ):
        assert expected in card
    assert card.count('```') == 2


def test_nothing_of_the_machine_is_published(hub: Hub, run, capsys: pytest.CaptureFixture):
    publish(run[0])
    files = dict(hub.repositories['me/cells'])
    # Its header: among random numbers, three given letters may occur.
    files['model.safetensors'] = files['model.safetensors'].partition(b'}}')[0]
    for name, content in files.items():
        assert b'ada' not in content.replace(b'data', b'').replace(b'metadata', b''), name
    text = files['config.py'].decode()
    assert Config.fromstring(text, '.py').data_root == 'cells/'
    assert "'annotations/train.json'" in text
    assert 'https://example.org/a/b' in text
    assert capsys.readouterr().out.startswith('config: data_root was')


SHORTENED = {
    '/home/ada/x.json': 'x.json',
    '~/x/y/': 'y/',
    '/home/ada lovelace/my cells/x.json': 'x.json',
    r'C:\Users\ada\x': 'x',
    r'\\server\share\x': 'x',
    'a /home/ada/b c': 'a b c',
    '/data/a.json /data/b.json': 'a.json b.json',
    '/usr/bin/curl https://ada:secret@host': 'curl https://host',
    ('/a/b', 1): ('b', 1),
}
KEPT = ['data/coco/', '../x', 's3://bucket/x', 'mean / std', '/ 255', '/']


def test_absolute_paths_are_shortened(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture):
    written = [*SHORTENED, *KEPT]
    publish_config(
        tmp_path, '\n'.join(f'key_{i:02} = {value!r}' for i, value in enumerate(written))
    )
    published = Config.fromstring(hub.repositories['me/cells']['config.py'].decode(), '.py')
    assert list(published.to_dict().values()) == [*SHORTENED.values(), *KEPT]
    assert capsys.readouterr().out.count('was shortened to') == len(SHORTENED)


def test_names_of_the_user_and_the_host_are_reported(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    # Names are looked for in the lines that a user sees.
    for module in ('mmengine.config.config', 'yapf.yapflib.yapf_api'):
        monkeypatch.setattr(f'{module}.FormatCode', lay_out, raising=False)
    monkeypatch.setattr('getpass.getuser', lambda: 'lovelace')
    monkeypatch.setattr('socket.gethostname', lambda: 'engine')
    publish_config(tmp_path, "a = 'lovelace'\nb = 'engine_config'\nc = 'lovelaces'")
    said = [line for line in capsys.readouterr().out.splitlines() if 'the name of this' in line]
    assert said == ["config: the name of this user, lovelace, is in: a = 'lovelace'"]


def test_access_tokens_are_refused(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture):
    assert publish_config(tmp_path, f'token = {TOKEN!r}') == 1
    assert 'hf_xxx' in capsys.readouterr().err and not hub.repositories


def test_weights_are_replaced_only_on_request(hub: Hub, run, capsys: pytest.CaptureFixture):
    publish(run[0])
    before = dict(hub.repositories['me/cells'])
    assert publish(run[0]) == 1
    assert '--overwrite' in capsys.readouterr().err
    assert hub.repositories['me/cells'] == before
    assert publish(run[0], '--overwrite') == 0


def test_a_failed_commit_publishes_nothing(hub: Hub, run, capsys: pytest.CaptureFixture):
    hub.fault = 'full'
    assert publish(run[0]) == 1
    said = capsys.readouterr().err
    assert '507' in said and said.count('\n') == 1 and not hub.repositories['me/cells']


def test_publishing_needs_a_token(hub: Hub, run, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.delenv('HF_TOKEN')
    assert publish(run[0]) == 1
    assert 'HF_TOKEN' in capsys.readouterr().err and not hub.repositories


@pytest.mark.parametrize('address', [f'{ADDRESS}@v1', f'{ADDRESS}:a.pth', 'hf:cells'])
def test_only_a_repository_is_published_to(run, address: str, capsys: pytest.CaptureFixture):
    assert publish(run[0], address=address) == 1
    assert 'hf:' in capsys.readouterr().err.replace(address, '', 1)


def test_weights_alone_have_no_config(hub: Hub, tmp_path: Path):
    file = tmp_path / 'weights.pth'
    torch.save(dict(a=torch.zeros(2)), file)
    publish(file)
    assert set(hub.repositories['me/cells']) == {'README.md', 'config.json', 'model.safetensors'}
