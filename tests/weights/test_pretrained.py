"""Weights get into a backbone from a file, as its config says."""

import copy

import attacks
import pytest
import torch
from detector_runs import ARCH
from mmengine.model import PretrainedInit

from ptnt_mm.models import PyramidTNT, PyramidTNTClassifier
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint


@pytest.fixture(scope='module')
def published():
    """The weights of a classifier, as its authors publish them."""
    torch.manual_seed(0)
    return PyramidTNTClassifier(ARCH).state_dict()


@pytest.fixture
def backbone():
    torch.manual_seed(1)
    return PyramidTNT(ARCH)


def saved(path, checkpoint):
    torch.save(checkpoint, path)
    return path


def as_detector(weights):
    return {f'backbone.{key}': w for key, w in weights.items()} | {'neck.0.weight': torch.ones(1)}


def assert_loaded(module, weights):
    for key, own in module.state_dict().items():
        torch.testing.assert_close(own, weights[key], rtol=0, atol=0)


def test_an_authors_checkpoint(tmp_path, backbone, published):
    averaged = {key: weight + 1 for key, weight in published.items()}
    path = attacks.write_authors_checkpoint(tmp_path / 'ptnt.pth.tar', published, averaged)
    report = load_pretrained(backbone, path)
    assert_loaded(backbone, averaged)
    assert report.loaded == list(backbone.state_dict())


@pytest.mark.parametrize('kind', ['Pretrained', 'mmengine.Pretrained', PretrainedInit, None])
@pytest.mark.parametrize('form', [dict, lambda **init: [init]], ids=['dict', 'list'])
def test_init_cfg(tmp_path, published, kind, form):
    path = saved(tmp_path / 'w.pth', published)
    init = dict(checkpoint=str(path)) | (dict(type=kind) if kind else {})
    model = PyramidTNT(ARCH, init_cfg=form(**init))
    model.init_weights()
    assert_loaded(model, published)


def test_init_cfg_has_a_prefix(tmp_path, published):
    weights = {f'teacher.{key}': w for key, w in published.items()}
    path = saved(tmp_path / 'w.pth', weights | as_detector(PyramidTNT(ARCH).state_dict()))
    init = dict(type='Pretrained', checkpoint=str(path), prefix='teacher.')
    model = PyramidTNT(ARCH, init_cfg=init)
    model.init_weights()
    assert_loaded(model, published)


def test_init_cfg_without_a_file_is_refused():
    model = PyramidTNT(ARCH, init_cfg=dict(type='Pretrained'))
    with pytest.raises(CheckpointError, match='checkpoint='):
        model.init_weights()


def test_the_log_has_one_table(tmp_path, published, capsys):
    model = PyramidTNT(ARCH, pretrain_img_size=128, out_norms=True)
    load_pretrained(model, saved(tmp_path / 'w.pth', published), logger=None)
    out = capsys.readouterr().out
    assert 'w.pth (the whole file)' in out
    assert 'resized     5  outer_pos (1, 64, 8) -> (1, 256, 8)' in out
    assert 'unused      4  norm.weight, norm.bias, head.weight, head.bias' in out
    assert 'new         8  norm0.weight' in out
    assert 'missing' not in out


def test_parameters_stay_in_place_and_keep_their_precision(published):
    model = PyramidTNT(ARCH, pretrain_img_size=128)
    before = dict(model.named_parameters())
    half = {key: w.half() if w.is_floating_point() else w for key, w in published.items()}
    load_pretrained(model, half)
    after = dict(model.named_parameters())
    assert after.keys() == before.keys()
    assert all(weight is before[key] for key, weight in after.items())
    assert model.outer_pos.dtype == torch.float32 and model.outer_pos.shape == (1, 256, 8)
    torch.testing.assert_close(model.inner_pos, published['inner_pos'].half().float())


def test_a_head_of_another_number_of_classes_keeps_its_values(published):
    model = PyramidTNTClassifier(ARCH, num_classes=7)
    head = copy.deepcopy(model.head.state_dict())
    load_pretrained(model, published)
    assert_loaded(model, published | {f'head.{key}': weight for key, weight in head.items()})


@pytest.mark.parametrize('value', [None, float('nan')])
def test_a_backbone_stays_as_it_was_if_the_weights_do_not_fit(backbone, published, value):
    before = copy.deepcopy(backbone.state_dict())
    weights = dict(published)
    bias = weights.pop('stages.3.blocks.0.outer_mlp.fc2.bias')
    if value is not None:
        weights['stages.3.blocks.0.outer_mlp.fc2.bias'] = torch.full_like(bias, value)
    with pytest.raises(CheckpointError, match=r'the given weights.*outer_mlp\.fc2\.bias'):
        load_pretrained(backbone, weights)
    assert_loaded(backbone, before)


@pytest.mark.parametrize('attack', attacks.MAIN)
def test_attacks_through_init_cfg(tmp_path, attack):
    canary = tmp_path / 'canary'
    content = {'state_dict': attacks.REFUSED[attack](canary)}
    path = attacks.write_zip(tmp_path / 'bad.pth', content)
    model = PyramidTNT(ARCH, init_cfg=dict(type='Pretrained', checkpoint=str(path)))
    with pytest.raises(CheckpointError, match='refused'):
        model.init_weights()
    assert not canary.exists()


def test_stored_config_is_only_text(tmp_path, published):
    canary = tmp_path / 'canary'
    text = attacks.command_config(canary)
    content = attacks.store_config({'state_dict': as_detector(published)}, text)
    path = saved(tmp_path / 'a.pth', content)
    model = PyramidTNT(ARCH, init_cfg=dict(type='Pretrained', checkpoint=str(path)))
    model.init_weights()
    assert read_checkpoint(path)['meta']['cfg'] == text
    assert not canary.exists()
