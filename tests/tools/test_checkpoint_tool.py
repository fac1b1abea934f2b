import hashlib
import json
import subprocess
import sys
from pathlib import Path

import attacks
import pytest
import torch

from ptnt_mm.checkpoints.read import read_checkpoint
from ptnt_mm.cli import checkpoint as tool
from ptnt_mm.models import CPVT, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.models.weights import checkpoint_files
from ptnt_mm.models.weights.pretrained import load_pretrained

TOOL = Path(__file__).parents[2] / 'tools' / 'checkpoint.py'


@pytest.fixture(scope='module')
def authors(tmp_path_factory):
    """The authors' training checkpoint of arch tiny, and its averaged weights."""
    weights = PyramidTNTClassifier('tiny').state_dict()
    averaged = {key: weight + 1 for key, weight in weights.items()}
    path = tmp_path_factory.mktemp('authors') / 'ptnt_ti.pth.tar'
    return attacks.write_authors_checkpoint(path, weights, averaged), averaged


def run(capsys, *arguments):
    """The tool's exit status and what it printed, as (status, out, err)."""
    status = tool.main([str(argument) for argument in arguments])
    return status, *capsys.readouterr()


def table(out):
    return dict(line.split(':', 1) for line in out.splitlines())


def test_inspect_arch_small_as_a_user_does(tmp_path):
    weights = PyramidTNTClassifier('small').state_dict()
    path = attacks.write_authors_checkpoint(tmp_path / 'ptnt_s.pth.tar', weights, weights)
    done = subprocess.run(
        [sys.executable, TOOL, 'inspect', path],
        capture_output=True,
        text=True,
        check=True,
        cwd=TOOL.parents[1],
        env={**__import__('os').environ, 'PYTHONPATH': str(TOOL.parents[1])},
    )
    found = {name: value.strip() for name, value in table(done.stdout).items()}
    assert found['arch'] == 'small'
    assert found['pretraining'] == '256 px'
    assert found['coverage'].startswith('complete')
    assert found['unused'] == 'norm (2), head (2), state_dict, optimizer, args'
    assert found['sha256'] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found['weights'].endswith('from state_dict_ema')
    assert (found['epoch'], found['metric']) == ('299', '82.0')


def test_inspect_a_detector_of_another_size(tmp_path, capsys):
    state = {
        f'backbone.{k}': w
        for k, w in PyramidTNT('tiny', pretrain_img_size=320).state_dict().items()
    }
    state['bbox_head.weight'] = torch.zeros(1)
    meta = dict(epoch=12, iter=600, cfg='raise SystemExit')
    torch.save({'meta': meta, 'state_dict': state, 'optimizer': {}}, tmp_path / 'epoch_12.pth')
    status, out, _ = run(capsys, 'inspect', tmp_path / 'epoch_12.pth')
    found = table(out)
    assert status == 0
    assert 'tiny' in found['arch'] and '320 px' in found['pretraining']
    assert 'complete' in found['coverage'] and 'bbox_head (1)' in found['unused']
    assert found['epoch'].strip() == '12' and 'SystemExit' not in out


def test_inspect_names_what_is_missing(tmp_path, capsys):
    state = PyramidTNT('tiny').state_dict()
    del state['stages.3.blocks.1.outer_norm2.bias']
    state['inner_pos'][0, 0, 0] = float('nan')
    torch.save(state, tmp_path / 'part.pth')
    _, out, _ = run(capsys, 'inspect', tmp_path / 'part.pth')
    assert '1 of 321 missing or of another shape: stages.3.blocks.1.outer_norm2.bias' in out
    assert 'NaN or infinity in inner_pos' in out


def test_inspect_another_model(tmp_path, capsys):
    torch.save({'layer1.0.conv1.weight': torch.zeros(1)}, tmp_path / 'r50.pth')
    status, out, _ = run(capsys, 'inspect', tmp_path / 'r50.pth')
    assert status == 0
    assert 'it looks like a ResNet' in out
    assert 'coverage' not in out


def test_inspect_another_arch_inside_a_detector(tmp_path, capsys):
    state = {'backbone.outer_pos': torch.zeros(1, 64, 8), 'backbone.stages.0.x': torch.zeros(1)}
    torch.save(state, tmp_path / 'mine.pth')
    _, out, _ = run(capsys, 'inspect', tmp_path / 'mine.pth')
    assert 'it looks like PyramidTNT of an unknown arch, 64 px' in out


def test_inspect_a_size_that_is_no_multiple_of_64(tmp_path, capsys):
    state = PyramidTNT('tiny').state_dict()
    state['outer_pos'] = torch.zeros(1, 28 * 28, 80)
    torch.save(state, tmp_path / 'odd.pth')
    status, out, _ = run(capsys, 'inspect', tmp_path / 'odd.pth')
    assert status == 0
    assert '224 px, not a multiple of 64: its tables must be converted' in out
    assert 'complete, all 321' in out


def test_inspect_squeeze_and_excitation(tmp_path, capsys):
    model = PyramidTNT('tiny', with_se=True)
    state = dict(model.state_dict(), **{'stages.0.extra': torch.zeros(1)})
    torch.save(state, tmp_path / 'se.pth')
    _, out, _ = run(capsys, 'inspect', tmp_path / 'se.pth')
    found = {name: value.strip() for name, value in table(out).items()}
    assert found['arch'] == 'tiny, with_se=True'
    assert found['coverage'] == f'complete, all {len(model.state_dict())} of the trunk'
    assert found['unused'] == 'stages (1)'


def test_inspect_timms_tnt(tmp_path, capsys):
    timm = pytest.importorskip('timm')
    model = timm.create_model('tnt_s_patch16_224')
    torch.save(model.state_dict(), tmp_path / 'tnt.pth')
    _, out, _ = run(capsys, 'inspect', tmp_path / 'tnt.pth')
    found = {name: value.strip() for name, value in table(out).items()}
    assert (found['arch'], found['pretraining']) == ('TNT small', '224 px')
    assert found['coverage'].startswith('complete') and found['unused'] == 'head (2)'


@pytest.mark.parametrize('with_cls_token', [True, False])
@pytest.mark.parametrize('position', ['peg', 'learned'])
def test_inspect_a_detector_with_cpvt(tmp_path, capsys, position, with_cls_token):
    model = CPVT('tiny', position=position, with_cls_token=with_cls_token)
    state = {f'backbone.{key}': weight for key, weight in model.state_dict().items()}
    torch.save({'state_dict': state | {'neck.x': torch.zeros(1)}}, tmp_path / 'cpvt.pth')
    _, out, _ = run(capsys, 'inspect', tmp_path / 'cpvt.pth')
    found = {name: value.strip() for name, value in table(out).items()}
    assert (found['arch'], found['unused']) == ('CPVT tiny', 'neck (1)')
    assert found['coverage'] == f'complete, all {len(state)} of the trunk'


@pytest.mark.parametrize('command', ['inspect', 'publish'])
def test_meta_that_is_text(tmp_path, capsys, command):
    torch.save({'state_dict': {'w': torch.zeros(1)}, 'meta': 'mine'}, tmp_path / 'm.pth')
    status, _, err = run(capsys, command, tmp_path / 'm.pth')
    assert status == 1 and "m.pth: the checkpoint's meta is a str, not a dict" in err


@pytest.mark.parametrize('suffix', ['.safetensors', '.pth'])
def test_convert_writes_plain_tensors(tmp_path, capsys, authors, suffix):
    path, averaged = authors
    out = tmp_path / f'weights{suffix}'
    assert run(capsys, 'convert', path, out)[:2] == (0, f'wrote {out}\n')
    plain = read_checkpoint(out) if suffix == '.safetensors' else torch.load(out, weights_only=True)
    assert plain.keys() == averaged.keys()
    assert all(torch.equal(plain[key], averaged[key]) for key in averaged)
    load_pretrained(PyramidTNT('tiny'), out)
    assert not list(tmp_path.glob('.*'))


def test_publish(tmp_path, capsys, authors):
    path, averaged = authors
    status, out, _ = run(capsys, 'publish', path, tmp_path)
    (published,) = tmp_path.glob('*')
    digest = hashlib.sha256(published.read_bytes()).hexdigest()
    assert published.name == f'ptnt_ti-{digest[:8]}.pth' and str(published) in out
    content = read_checkpoint(published)
    assert content.keys() == {'meta', 'state_dict'}
    assert content['meta'] == dict(epoch=299, arch='ptnt_s_patch16_256', metric=82.0)
    assert torch.equal(content['state_dict']['outer_pos'], averaged['outer_pos'])


@pytest.mark.parametrize('name', ['m.pt', 'm.pth', 'm.pth.tar', 'm.safetensors'])
def test_published_name(tmp_path, capsys, name):
    source = tmp_path / 'in' / name
    source.parent.mkdir()
    torch.save({'w': torch.zeros(1)}, tmp_path / 'w.pth')
    if name == 'm.safetensors':
        run(capsys, 'convert', tmp_path / 'w.pth', source)
    else:
        (tmp_path / 'w.pth').rename(source)
    assert run(capsys, 'publish', source, tmp_path / 'in')[0] == 0
    (published,) = source.parent.glob('m-*')
    digest = hashlib.sha256(published.read_bytes()).hexdigest()
    assert published.name == f'm-{digest[:8]}.pth'


def test_published_name_of_an_address(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(checkpoint_files, 'read_checkpoint', lambda file: {'w': torch.zeros(1)})
    assert run(capsys, 'publish', 'https://127.0.0.1/x/m.pth?raw=1', tmp_path)[0] == 0
    (published,) = tmp_path.glob('m-*.pth')
    assert len(published.name) == len('m-12345678.pth')


def test_inspect_as_json(authors, capsys):
    path, _ = authors
    status, out, err = run(capsys, 'inspect', path, '--json', '-')
    described = json.loads(out)
    assert status == 0 and described['bytes'] == path.stat().st_size
    assert {name: str(value) for name, value in described.items()} == {
        name: value.strip() for name, value in table(err).items()
    }


def test_interrupted(capsys, monkeypatch):
    def interrupt(file):
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_files, 'read_checkpoint', interrupt)
    assert run(capsys, 'inspect', 'm.pth') == (130, '', '\nStopped.\n')


def test_publish_keeps_class_names_and_drops_the_config(tmp_path, capsys):
    meta = dict(epoch=12, cfg='x=1', dataset_meta=dict(classes=('cat', 'dog')))
    state = {'backbone.w': torch.zeros(1)}
    checkpoint = dict(meta=meta, state_dict=state, optimizer={}, message_hub=attacks.honest_log())
    torch.save(checkpoint, tmp_path / 'epoch_12.pth')
    run(capsys, 'publish', tmp_path / 'epoch_12.pth')
    (published,) = tmp_path.glob('epoch_12-*.pth')
    assert read_checkpoint(published)['meta'] == dict(
        epoch=12, dataset_meta=dict(classes=('cat', 'dog'))
    )


def test_publish_twice_gives_the_same_name(tmp_path, capsys, authors):
    assert run(capsys, 'publish', authors[0], tmp_path)[0] == 0
    status, _, err = run(capsys, 'publish', authors[0], tmp_path)
    assert status == 1 and 'exists: choose another name, or give --overwrite' in err
    assert run(capsys, 'publish', authors[0], tmp_path, '--overwrite')[0] == 0
    assert len(list(tmp_path.glob('*'))) == 1


def test_convert_overwrites_only_when_asked(tmp_path, capsys, authors):
    out = tmp_path / 'mine.pth'
    out.write_text('mine')
    status, _, err = run(capsys, 'convert', authors[0], out)
    assert status == 1 and 'exists' in err and out.read_text() == 'mine'
    assert run(capsys, 'convert', authors[0], out, '--overwrite')[0] == 0
    assert 'outer_pos' in read_checkpoint(out)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('inspect', 'gone.pth'), 'gone.pth: no such file'),
        (('inspect', 'text.pth'), 'is a text file'),
        (('inspect', 'none.pth'), 'none.pth: contains no weights'),
        (('convert', 'good.pth', 'out.onnx'), 'ends in .safetensors or .pth'),
        (('convert', 'good.pth', 'nowhere/out.pth'), 'there is no folder nowhere'),
        (('convert', 'none.pth', 'out.pth'), 'none.pth: contains no weights'),
        (('publish', 'good.pth', 'nowhere'), 'nowhere is not a folder'),
        (('publish', 'https://127.0.0.1/w.pth'), 'is an address: give a folder'),
        (('publish', 'none.pth'), 'none.pth: contains no weights'),
    ],
)
def test_errors_are_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path('text.pth').write_text('hello')
    torch.save({'epoch': 1}, 'none.pth')
    torch.save({'w': torch.zeros(1)}, 'good.pth')
    status, out, err = run(capsys, *arguments)
    assert status == 1 and out == ''
    assert err.startswith('error: ') and message in err and err.count('\n') == 1


@pytest.mark.parametrize('places', [0, 2**14, 2**40])
def test_inspect_a_position_table_of_an_impossible_size(tmp_path, capsys, places):
    """Its other tables would be larger than any memory, or have sides of -1."""
    state = PyramidTNT('tiny').state_dict()
    state['outer_pos'] = torch.empty(1, places, 0)
    torch.save(state, tmp_path / 'odd.pth')
    status, out, _ = run(capsys, 'inspect', tmp_path / 'odd.pth')
    assert status == 0 and '1 of 321 missing or of another shape: outer_pos' in out


@pytest.mark.parametrize('name', ['__metadata__', '\ud800'])
def test_names_that_safetensors_cannot_hold(tmp_path, capsys, name):
    torch.save({name: torch.zeros(1)}, tmp_path / 'a.pth')
    status, _, err = run(capsys, 'convert', tmp_path / 'a.pth', tmp_path / 'a.safetensors')
    assert status == 1 and err.startswith('error: ') and 'convert to .pth' in err
    assert not (tmp_path / 'a.safetensors').exists()


@pytest.mark.parametrize('command', ['inspect', 'convert', 'publish'])
@pytest.mark.parametrize('attack', attacks.MAIN, ids=lambda attack: attack.__name__)
def test_attack(tmp_path, capsys, command, attack):
    canary = tmp_path / 'canary'
    before = attacks.snapshot()
    path = attacks.write_zip(tmp_path / 'bad.pth', {'w': attack(canary)})
    out = [tmp_path / 'out.pth'] if command == 'convert' else []
    status, _, err = run(capsys, command, path, *out)
    assert status == 1 and 'bad.pth: refused' in err and err.count('\n') == 1
    assert ("asks for 'os.system'" in err) == (attack is attacks.os_system)
    assert not canary.exists() and attacks.snapshot() == before


def test_names_that_steer_a_terminal(tmp_path, capsys):
    weight = attacks.tensor((2,), (1,))
    content = {
        'state_dict': {attacks.ESCAPES: weight},
        attacks.ESCAPES: {},
        'time': attacks.ESCAPES,
    }
    path = attacks.write_zip(tmp_path / 'bad.pth', content)
    status, out, _ = run(capsys, 'inspect', path)
    assert status == 0
    assert all(character.isprintable() for character in out.replace('\n', ''))
    assert out.count(r'\x1b[2J') == 4


def test_forced_unsafe_loading(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    canary = tmp_path / 'canary'
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.os_system(canary))
    status, _, err = run(capsys, 'inspect', path)
    assert status == 1 and 'unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD' in err
    assert not canary.exists()


def test_system_refuses_to_write(tmp_path, capsys, authors, monkeypatch):
    def full(number):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('os.fsync', full)
    status, _, err = run(capsys, 'convert', authors[0], tmp_path / 'out.pth')
    assert status == 1 and 'No space left' in err
    assert not list(tmp_path.iterdir())
