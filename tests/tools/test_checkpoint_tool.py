import hashlib
import json
from pathlib import Path

import attacks
import pytest
import torch

from ptnt_mm.models import CPVT, TNT, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.workbench.cli import main


@pytest.fixture(scope='module')
def authors(tmp_path_factory):
    """The authors' training checkpoint of arch tiny, and its averaged weights."""
    weights = PyramidTNTClassifier('tiny').state_dict()
    averaged = {key: weight + 1 for key, weight in weights.items()}
    path = tmp_path_factory.mktemp('authors') / 'ptnt_ti.pth.tar'
    return attacks.write_authors_checkpoint(path, weights, averaged), averaged


def run(capsys, *arguments):
    """The tool's exit status and what it printed, as (status, out, err)."""
    status = main.run('checkpoint', [str(argument) for argument in arguments])
    return status, *capsys.readouterr()


def table(out):
    lines = (line.split(':', 1) for line in out.splitlines())
    return {name: value.strip() for name, value in lines}


def test_inspect_an_authors_checkpoint(tmp_path, capsys):
    weights = PyramidTNTClassifier('small').state_dict()
    path = attacks.write_authors_checkpoint(tmp_path / 'ptnt_s.pth.tar', weights, weights)
    status, out, _ = run(capsys, 'inspect', path)
    found = table(out)
    assert (status, found['arch']) == (0, 'small')
    assert found['pretraining'] == '256 px'
    assert found['coverage'].startswith('complete')
    assert found['unused'] == 'norm (2), head (2), state_dict, optimizer, args'
    assert found['sha256'] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found['weights'].endswith('from state_dict_ema')
    assert (found['epoch'], found['metric']) == ('299', '82.0')


def tiny(lacks='', **weights):
    state = PyramidTNT('tiny').state_dict() | weights
    state.pop(lacks, None)
    return state


def in_a_detector(model):
    state = {f'backbone.{key}': weight for key, weight in model.state_dict().items()}
    state['bbox_head.weight'] = torch.zeros(1)
    meta = dict(epoch=12, iter=600, cfg='raise SystemExit')
    return {'meta': meta, 'state_dict': state, 'optimizer': {}}


def timms_tnt():
    import timm

    return timm.create_model('tnt_s_patch16_224').state_dict()


NAN = torch.full((1, 16, 5), float('nan'))
LOST = 'stages.3.blocks.1.outer_norm2.bias'


@pytest.mark.parametrize(
    ('content', 'expected'),
    [
        (
            lambda: in_a_detector(PyramidTNT('tiny', pretrain_img_size=320)),
            dict(arch='tiny', pretraining='320 px', coverage='complete', epoch='12')
            | dict(unused='bbox_head (1), meta, optimizer'),
        ),
        *(
            (
                lambda cpvt=cpvt: in_a_detector(CPVT('tiny', **cpvt)),
                dict(arch='CPVT tiny', coverage='complete', unused='bbox_head (1), meta'),
            )
            for cpvt in ({}, dict(with_cls_token=False), dict(position='learned'))
        ),
        (
            timms_tnt,
            dict(arch='TNT small', pretraining='224 px', coverage='complete', unused='head (2)'),
        ),
        (
            lambda: PyramidTNT('tiny', with_se=True).state_dict() | {'stages.0.x': torch.ones(1)},
            dict(arch='tiny, with_se=True', coverage='complete', unused='stages (1)'),
        ),
        (
            lambda: PyramidTNT('tiny', norm_cfg=dict(type='GN', num_groups=1)).state_dict(),
            dict(arch='tiny, GroupNorm', coverage='complete, all 306'),
        ),
        *(
            (
                lambda kind=kind, arch=arch, position=position: kind(
                    arch, position=position
                ).state_dict(),
                dict(arch=f"{prefix}{arch}, position='{position}'", coverage='complete'),
            )
            for kind, arch, prefix, positions in (
                (PyramidTNT, 'tiny', '', ('learned', 'relative', 'peg', 'sinusoidal')),
                (TNT, 'small', 'TNT ', ('peg', 'relative_2d', 'relative_shaw', 'sinusoidal')),
                (CPVT, 'tiny', 'CPVT ', ('learned', 'relative_2d', 'sinusoidal')),
            )
            for position in positions
        ),
        # What weights do not show is in the metadata that we write, if it is true.
        *(
            (
                lambda stated=stated: dict(
                    meta=dict(network=dict(type='PyramidTNT', arch='tiny') | stated),
                    state_dict=PyramidTNT('tiny', position='none').state_dict(),
                ),
                dict(arch=f'tiny, {shown}', coverage='complete'),
            )
            for stated, shown in (
                (dict(position='none', out_norms=False), "position='none', out_norms=False"),
                (dict(position='peg'), "position='sinusoidal', or position='none'"),
                (dict(positoin='none'), "position='sinusoidal', or position='none'"),
                (dict(arch={}), "position='sinusoidal', or position='none'"),
            )
        ),
        (lambda: tiny(LOST), dict(coverage=f'1 of 321 missing or of a different shape: {LOST}')),
        (lambda: tiny(inner_pos=NAN), dict(broken='NaN or infinity in inner_pos')),
        (
            lambda: tiny(outer_pos=torch.zeros(1, 28 * 28, 80)),
            dict(pretraining='224 px, not a multiple of 64', coverage='complete, all 321'),
        ),
        # The other tables would have sides of -1, or be larger than any memory.
        *(
            (
                lambda places=places: tiny(outer_pos=torch.empty(1, places, 0)),
                dict(coverage='1 of 321 missing or of a different shape: outer_pos'),
            )
            for places in (0, 2**40)
        ),
        (
            lambda: {'layer1.0.conv1.weight': torch.zeros(1)},
            dict(arch='unknown; it looks like a ResNet', unused='layer1 (1)'),
        ),
        (
            lambda: {
                **{f'backbone.{key}': NAN for key in PyramidTNT('tiny').state_dict()},
                'backbone.outer_pos': torch.zeros(1, 64, 8),
            },
            dict(arch='unknown; it looks like PyramidTNT of an unknown arch, 64 px'),
        ),
    ],
)
def test_inspect(tmp_path, capsys, content, expected):
    torch.save(content(), tmp_path / 'weights.pth')
    status, out, _ = run(capsys, 'inspect', tmp_path / 'weights.pth')
    found = table(out)
    assert status == 0 and 'SystemExit' not in out
    assert {name: found[name][: len(value)] for name, value in expected.items()} == expected
    assert ('coverage' in found) == (not found['arch'].startswith('unknown'))


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


def test_published_name_of_an_address(tmp_path, capsys, server):
    address, folder, _ = server
    torch.save({'w': torch.zeros(1)}, folder / 'm.pth')
    assert run(capsys, 'publish', f'{address}/m.pth?raw=1', tmp_path)[0] == 0
    (published,) = tmp_path.glob('m-*.pth')
    assert len(published.name) == len('m-12345678.pth')


def test_inspect_as_json(authors, capsys):
    path, _ = authors
    status, out, err = run(capsys, 'inspect', path, '--json', '-')
    described = json.loads(out)
    assert status == 0 and described['bytes'] == path.stat().st_size
    assert {name: str(value) for name, value in described.items()} == table(err)


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
    assert status == 1 and 'exists: choose another name, or pass --overwrite' in err
    assert run(capsys, 'publish', authors[0], tmp_path, '--overwrite')[0] == 0
    assert len(list(tmp_path.glob('*'))) == 1


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
        (('publish', 'https://127.0.0.1/w.pth'), 'is an address: specify a folder'),
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


@pytest.mark.parametrize('name', ['__metadata__', '\ud800'])
def test_names_that_safetensors_cannot_hold(tmp_path, capsys, name):
    torch.save({name: torch.zeros(1)}, tmp_path / 'a.pth')
    status, _, err = run(capsys, 'convert', tmp_path / 'a.pth', tmp_path / 'a.safetensors')
    assert status == 1 and err.startswith('error: ') and 'convert to .pth' in err
    assert not (tmp_path / 'a.safetensors').exists()


@pytest.mark.parametrize('command', ['inspect', 'convert', 'publish'])
@pytest.mark.parametrize('attack', attacks.MAIN)
def test_attack(tmp_path, capsys, command, attack):
    canary = tmp_path / 'canary'
    before = attacks.snapshot()
    path = attacks.write_zip(tmp_path / 'bad.pth', {'w': attacks.REFUSED[attack](canary)})
    out = [tmp_path / 'out.pth'] if command == 'convert' else []
    status, _, err = run(capsys, command, path, *out)
    assert status == 1 and 'bad.pth: refused' in err and err.count('\n') == 1
    assert ("asks for 'os.system'" in err) == (attack == 'os_system')
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
