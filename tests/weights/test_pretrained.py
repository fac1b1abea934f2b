import copy
import hashlib
import json
from collections import OrderedDict
from pathlib import Path

import attacks
import pytest
import torch
from mmengine.model import PretrainedInit
from torch import nn

from ptnt_mm.models import CPVT, TNT, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.models.positions import (
    RELATIVE_POSITIONS,
    FlatRelativePosition,
    GridRelativePosition,
    resize_grid,
)
from ptnt_mm.weights import names
from ptnt_mm.weights.identity import identify, looks_like
from ptnt_mm.weights.pretrained import (
    adapt,
    find_state_dict,
    find_tables,
    load_pretrained,
    split_prefix,
)
from ptnt_mm.weights.reader.read import cache_path, read_checkpoint
from ptnt_mm.weights.reader.refusal import CheckpointError

SHAPES = json.loads(
    Path(__file__).parents[1].joinpath('data', 'state_dict_shapes.json').read_text()
)


def authors_weights(arch):
    """A state dict with the authors' keys and shapes, without memory for its numbers."""
    shapes = SHAPES[arch]['state_dict']
    return {key: torch.zeros(shape, device='meta') for key, shape in shapes.items()}


@pytest.fixture(scope='module')
def tiny():
    torch.manual_seed(0)
    return PyramidTNTClassifier('tiny').state_dict()


@pytest.fixture
def backbone():
    torch.manual_seed(1)
    return PyramidTNT('tiny')


def saved(path, checkpoint):
    torch.save(checkpoint, path)
    return path


def assert_loaded(module, weights, except_for=()):
    for key, own in module.state_dict().items():
        if key not in except_for:
            torch.testing.assert_close(own, weights[key], rtol=0, atol=0)


def as_detector(weights, prefix='backbone.'):
    detector = {prefix + key: weight for key, weight in weights.items()}
    return {**detector, 'bbox_head.weight': torch.zeros(1), 'neck.0.weight': torch.zeros(1)}


@pytest.mark.parametrize('arch', SHAPES)
def test_identify(arch):
    weights = authors_weights(arch)
    assert identify(weights) == ('PyramidTNT', arch, SHAPES[arch]['img_size'])
    assert looks_like(weights) == f'PyramidTNT {arch}, {SHAPES[arch]["img_size"]} px'


def test_identify_another_size_and_another_arch():
    weights = authors_weights('small')
    weights['outer_pos'] = torch.zeros(1, (320 // 8) ** 2, 128)
    assert identify(weights) == ('PyramidTNT', 'small', 320)
    weights['outer_pos'] = torch.zeros(1, 1000, 128)
    weights['stages.1.blocks.0.outer_norm1.weight'] = torch.zeros(100)
    assert identify(weights) == ('PyramidTNT', None, None)


FAMILY = [
    (TNT, dict(arch='small'), 'TNT small, 224 px'),
    (TNT, dict(arch='base', pretrain_img_size=384), 'TNT base, 384 px'),
    (CPVT, dict(arch='tiny'), 'CPVT tiny'),
    (CPVT, dict(arch='small', position='learned'), 'CPVT small, 224 px'),
    (CPVT, dict(arch='base', position='learned', with_cls_token=False), 'CPVT base, 224 px'),
    (CPVT, dict(arch=dict(depth=1, dim=24, heads=2)), 'CPVT of an unknown arch'),
]


@pytest.mark.parametrize(('kind', 'settings', 'name'), FAMILY, ids=[row[2] for row in FAMILY])
def test_identify_a_backbone_of_one_scale(kind, settings, name):
    with torch.device('meta'):
        weights = kind(**settings).state_dict()
    assert looks_like(weights) == name


@pytest.mark.parametrize(
    ('key', 'name'),
    [
        ('layers.0.blocks.0.attn.relative_position_bias_table', 'Swin'),
        ('layer1.0.conv1.weight', 'ResNet'),
        ('cls_token', 'Vision Transformer'),
        ('patch_embed1.proj.weight', 'PVT'),
        ('something.else', 'unknown model with the keys something.else'),
    ],
)
def test_looks_like_other_models(key, name):
    assert name in looks_like({key: torch.zeros(1)})


def test_entries_in_order():
    a, b, c = ({'w': torch.full((1,), float(i))} for i in range(3))
    assert find_state_dict({'state_dict': a, 'state_dict_ema': b}) == (b, 'state_dict_ema')
    assert find_state_dict({'state_dict': a, 'state_dict_ema': None}) == (a, 'state_dict')
    # MMEngine's EMA hook swaps: its state_dict is the average.
    swapped = {'state_dict': a, 'ema_state_dict': c, 'state_dict_ema': b, 'meta': {}}
    assert find_state_dict(swapped) == (a, 'state_dict')
    assert find_state_dict({'model': a, 'model_ema': b}) == (b, 'model_ema')
    assert find_state_dict({'model': a, 'optimizer': {}}) == (a, 'model')
    assert find_state_dict(a) == (a, 'the file itself')


def test_no_weights_at_all():
    with pytest.raises(CheckpointError, match='contains no weights.*found epoch, optimizer'):
        find_state_dict({'epoch': 3, 'optimizer': {}})


@pytest.mark.parametrize('strange', ['text', 3, [1], None])
def test_entries_of_another_kind(tmp_path, strange):
    with pytest.raises(CheckpointError, match='contains no weights'):
        find_state_dict({'model': strange, 'state_dict': strange})
    hub = {'runtime_info': strange}
    for name, entries in {
        'meta': {'meta': strange},
        'message_hub': {'message_hub': strange},
        'message_hub.runtime_info': {'message_hub': hub},
    }.items():
        path = saved(tmp_path / 'a.pth', {'state_dict': {'w': torch.ones(1)}, **entries})
        kind = type(strange).__name__
        with pytest.raises(CheckpointError, match=rf'a\.pth: .*{name} is a {kind}, not a dict'):
            read_checkpoint(path)


@pytest.mark.parametrize(
    'prefix', ['', 'module.', 'backbone.', 'model.', 'module.backbone.', 'model.module.backbone.']
)
def test_prefixes(prefix):
    weights = {'outer_pos': torch.zeros(1), 'stages.0.blocks.0.proj.weight': torch.ones(1)}
    trunk, others = split_prefix({prefix + key: w for key, w in weights.items()} | {'neck.0': None})
    assert {key: trunk[key] for key in weights} == weights
    assert others == ([] if prefix == '' else ['neck.0'])


def test_prefix_with_most_of_the_trunk_wins():
    weights = {f'backbone.stages.{i}.x': torch.zeros(1) for i in range(3)}
    trunk, others = split_prefix({**weights, 'outer_pos': torch.zeros(1)})
    assert list(trunk) == [f'stages.{i}.x' for i in range(3)]
    assert others == ['outer_pos']


def test_authors_training_checkpoint(tmp_path, backbone, tiny):
    averaged = {key: weight + 1 for key, weight in tiny.items()}
    path = attacks.write_authors_checkpoint(tmp_path / 'ptnt.pth.tar', tiny, averaged)
    report = load_pretrained(backbone, path)
    assert_loaded(backbone, averaged)
    assert sorted(report.unused) == ['head.bias', 'head.weight', 'norm.bias', 'norm.weight']
    assert not report.missing and not report.new and not report.resized
    assert len(report.loaded) == len(backbone.state_dict())


@pytest.mark.parametrize('kind', ['Pretrained', 'mmengine.Pretrained', PretrainedInit])
@pytest.mark.parametrize('form', [dict, lambda **init: [init]], ids=['dict', 'list'])
def test_init_cfg(tmp_path, tiny, kind, form):
    path = saved(tmp_path / 'tiny.pth', tiny)
    model = PyramidTNT('tiny', init_cfg=form(type=kind, checkpoint=str(path)))
    model.init_weights()
    assert_loaded(model, tiny)


def test_init_cfg_without_a_file_is_refused():
    model = PyramidTNT('tiny', init_cfg=dict(type='Pretrained'))
    with pytest.raises(CheckpointError, match='checkpoint='):
        model.init_weights()


def test_the_log_has_one_table(tmp_path, tiny, capsys):
    model = PyramidTNT('tiny', pretrain_img_size=256, out_norms=True)
    load_pretrained(model, saved(tmp_path / 'tiny.pth', tiny), logger=None)
    out = capsys.readouterr().out
    assert 'tiny.pth (the file itself)' in out
    assert 'resized     5  outer_pos (1, 576, 80) -> (1, 1024, 80)' in out
    assert 'unused      4  norm.weight, norm.bias, head.weight, head.bias' in out
    assert 'new         8  norm0.weight' in out
    assert 'missing' not in out


@pytest.mark.parametrize('wrap', [as_detector, lambda w: as_detector(w, 'module.backbone.')])
def test_whole_detector(tmp_path, backbone, tiny, wrap):
    path = saved(tmp_path / 'epoch_12.pth', {'meta': {}, 'state_dict': wrap(tiny)})
    report = load_pretrained(backbone, path)
    assert_loaded(backbone, tiny)
    assert {'bbox_head.weight', 'neck.0.weight'} <= set(report.unused)


def test_prefix_can_be_given(backbone, tiny):
    weights = as_detector(tiny, 'teacher.') | as_detector(tiny)
    load_pretrained(backbone, weights, prefix='teacher')
    assert_loaded(backbone, tiny)
    with pytest.raises(CheckpointError, match='lacks'):
        load_pretrained(backbone, weights, prefix='student.')


def test_another_source_has_an_adapter(backbone, tiny, monkeypatch):
    theirs = {f'module.{key.replace("outer_pos", "patch_pos")}': w for key, w in tiny.items()}
    with pytest.raises(CheckpointError, match='lacks 1 weights: outer_pos'):
        load_pretrained(backbone, theirs)

    def rename(weights):
        return {key.replace('patch_pos', 'outer_pos'): w for key, w in weights.items()}

    monkeypatch.setitem(names._ADAPTERS, 'theirs', (r'^patch_pos$', rename))
    load_pretrained(backbone, theirs)
    assert_loaded(backbone, tiny)


def test_safetensors(tmp_path, backbone, tiny):
    from safetensors.torch import save_file

    save_file(tiny, tmp_path / 'tiny.safetensors')
    load_pretrained(backbone, tmp_path / 'tiny.safetensors')
    assert_loaded(backbone, tiny)


def test_safetensors_not_installed(tmp_path, monkeypatch):
    path = tmp_path / 'tiny.safetensors'
    path.write_bytes(b'\x00{}')
    monkeypatch.setitem(__import__('sys').modules, 'safetensors', None)
    with pytest.raises(CheckpointError, match='pip install safetensors'):
        read_checkpoint(path)


def test_damaged_safetensors(tmp_path):
    path = tmp_path / 'tiny.safetensors'
    path.write_bytes(b'\xff' * 64)
    with pytest.raises(CheckpointError, match='is not a safetensors file'):
        read_checkpoint(path)


def test_half_precision_weights(backbone, tiny):
    half = {key: w.half() if w.is_floating_point() else w for key, w in tiny.items()}
    load_pretrained(backbone, half)
    assert backbone.outer_pos.dtype == torch.float32
    torch.testing.assert_close(backbone.outer_pos, tiny['outer_pos'].half().float())


def test_another_pretraining_size_is_converted_in_place(tiny):
    model = PyramidTNT('tiny', pretrain_img_size=320)
    before = dict(model.named_parameters())
    report = load_pretrained(model, tiny)
    assert dict(model.named_parameters()).keys() == before.keys()
    assert all(param is before[name] for name, param in model.named_parameters())
    expected = resize_grid(tiny['outer_pos'], (24, 24), (40, 40))
    torch.testing.assert_close(model.outer_pos.detach(), expected)
    # Stage 1: queries on every 16th pixel, keys averaged by 2.
    grid = GridRelativePosition((12, 12), (6, 6))
    expected = grid.factors(tiny['stages.1.relative_pos'], (20, 20), (10, 10)).bias()
    torch.testing.assert_close(model.stages[1].relative_pos.detach(), expected)
    assert report.resized['stages.3.relative_pos'] == ((1, 8, 9, 9), (1, 8, 25, 25))
    assert len(report.resized) == 5 and not report.mismatched


def test_conversion_agrees_with_plain_interpolation(tiny):
    """The table is resized like an image, so torch's result must be in the model."""
    model = PyramidTNT('tiny', pretrain_img_size=64)
    load_pretrained(model, tiny)
    image = tiny['outer_pos'].reshape(1, 24, 24, 80).permute(0, 3, 1, 2)
    image = nn.functional.interpolate(image, size=(8, 8), mode='bicubic', align_corners=False)
    torch.testing.assert_close(model.outer_pos.detach(), image.flatten(2).transpose(1, 2))


def test_flat_tables_are_converted_by_the_flat_rule():
    """A model of another pretraining size must have the bias that the file's model computes."""
    weights = PyramidTNT('tiny', relative_position='flat', pretrain_img_size=64).state_dict()
    model = PyramidTNT('tiny', relative_position='flat', pretrain_img_size=128)
    load_pretrained(model, weights)
    flat = FlatRelativePosition((4, 4), (2, 2))
    expected = flat.factors(weights['stages.1.relative_pos'], (8, 8), (4, 4)).bias()
    torch.testing.assert_close(model.stages[1].relative_pos.detach(), expected)


def test_table_that_is_no_square_grid(backbone, tiny):
    with pytest.raises(CheckpointError, match=r'outer_pos is \(1, 575, 80\)'):
        load_pretrained(backbone, dict(tiny, outer_pos=torch.zeros(1, 575, 80)))


def test_no_relative_position(tiny):
    model = PyramidTNT('tiny', relative_position='none')
    report = load_pretrained(model, tiny)
    assert 'stages.0.relative_pos' in report.unused


def test_output_norms_are_new_but_load_where_they_are(tiny):
    model = PyramidTNT('tiny', out_norms=True)
    report = load_pretrained(model, tiny)
    assert 'norm3.bias' in report.new and len(report.new) == 8
    again = PyramidTNT('tiny', out_norms=True)
    changed = {key: weight + 1 for key, weight in model.state_dict().items()}
    assert not load_pretrained(again, changed).new
    assert_loaded(again, changed)


def test_head_of_another_number_of_classes_is_unused(tiny):
    model = PyramidTNTClassifier('tiny', num_classes=7)
    before = model.head.weight.clone()
    report = load_pretrained(model, tiny)
    assert report.new == ['head.weight', 'head.bias']
    assert {'head.weight', 'head.bias'} <= set(report.unused)
    assert_loaded(model, tiny, except_for=('head.weight', 'head.bias'))
    torch.testing.assert_close(model.head.weight, before)


class Scaled(nn.Module):
    """A position encoding with an additional weight, as in docs/extend.md."""

    pretrained_may_lack = ('scale',)

    def __init__(self, query_hw, key_hw):
        super().__init__()
        self.table = GridRelativePosition(query_hw, key_hw)
        self.scale = nn.Parameter(torch.ones(1))

    def new_table(self, heads):
        return self.table.new_table(heads)

    def factors(self, table, query_hw, key_hw):
        return self.table.factors(self.scale * table, query_hw, key_hw)

    def resize(self, table, *grids):
        return self.table.resize(table, *grids)


def test_statistics_need_a_batch_norm(tiny):
    model = PyramidTNT('tiny', norm_cfg=dict(type='GN', num_groups=1))
    with pytest.raises(CheckpointError, match=r"patch_embed\.common_conv\.1.*type='BN'"):
        load_pretrained(model, tiny)
    load_pretrained(model, model.state_dict())


def test_a_part_may_bring_weights_that_the_file_lacks(tiny, monkeypatch):
    monkeypatch.setitem(RELATIVE_POSITIONS, 'scaled', Scaled)
    model = PyramidTNT('tiny', relative_position='scaled', pretrain_img_size=64)
    torch.nn.init.constant_(model.stages[0].relative_position.scale, 3.0)
    report = load_pretrained(model, tiny)
    assert report.new == [f'stages.{i}.relative_position.scale' for i in range(4)]
    assert model.stages[0].relative_position.scale.item() == 3
    assert model(torch.zeros(1, 3, 64, 64))[0].isfinite().all()
    monkeypatch.setattr(Scaled, 'pretrained_may_lack', ())
    with pytest.raises(CheckpointError, match='lacks 4 weights.*lists its new weights in pretr'):
        load_pretrained(model, tiny)


@pytest.mark.parametrize(('kind', 'arch'), [(PyramidTNT, 'tiny'), (TNT, 'small')])
def test_pegs_are_new_where_no_published_file_has_them(kind, arch):
    weights = kind(arch, position='peg').state_dict()
    pegs = [key for key in weights if 'peg.' in key]
    model = kind(arch, position='peg')
    without = {key: w for key, w in weights.items() if key not in pegs}
    assert pegs and load_pretrained(model, without).new == pegs


def test_a_cpvt_needs_its_peg():
    weights = CPVT('tiny').state_dict()
    del weights['blocks.0.peg.conv.weight']
    with pytest.raises(CheckpointError, match='lacks 1 weights: blocks.0.peg.conv.weight'):
        load_pretrained(CPVT('tiny'), weights)


def test_a_backbone_may_replace_weights_of_the_file(tiny):
    class Mine(PyramidTNT):
        pretrained_may_lack = ('inner_pos', 'stages.3', 'stages.2.relative_p')

    model = Mine('tiny')
    model.inner_pos = nn.Parameter(torch.ones(2, 2))
    weights = {key: w for key, w in tiny.items() if not key.startswith('stages.3.blocks.0.')}
    report = load_pretrained(model, weights)
    assert 'inner_pos' in report.new and 'inner_pos' in report.unused
    assert all(key.startswith(('inner_pos', 'stages.3.blocks.0.')) for key in report.new)
    assert model.inner_pos.eq(1).all()
    del weights['stages.2.relative_pos']
    with pytest.raises(CheckpointError, match='lacks 1 weights: stages.2.relative_pos'):
        load_pretrained(model, weights)


def test_fewer_stages_leave_weights_unused(tiny):
    model = PyramidTNT('tiny', out_indices=(0, 1))
    report = load_pretrained(model, tiny)
    assert_loaded(model, tiny)
    assert any(key.startswith('stages.3.') for key in report.unused)


def test_missing_block_raises_names_it_and_changes_nothing(backbone, tiny):
    before = copy.deepcopy(backbone.state_dict())
    weights = {key: w for key, w in tiny.items() if not key.startswith('stages.1.blocks.4.')}
    with pytest.raises(CheckpointError) as error:
        load_pretrained(backbone, weights)
    message = str(error.value)
    assert 'stages.1.blocks.4.outer_norm1.weight' in message and 'more' in message
    assert 'looks like PyramidTNT tiny, 192 px' in message
    assert_loaded(backbone, before)


def test_another_arch_is_named(tiny):
    model = PyramidTNT('small', out_indices=(0,))
    with pytest.raises(CheckpointError) as error:
        load_pretrained(model, tiny)
    assert 'looks like PyramidTNT tiny, 192 px; the model is PyramidTNT small' in str(error.value)
    assert 'is (1, 576, 80), the model has (1, 1024, 128)' in str(error.value)


def test_another_model_is_named(tmp_path, backbone):
    path = saved(tmp_path / 'r50.pth', {'layer1.0.conv1.weight': torch.zeros(1)})
    with pytest.raises(CheckpointError, match=r'r50\.pth: lacks \d+ weights.*looks like a ResNet'):
        load_pretrained(backbone, path)


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_numbers_that_are_none(backbone, tiny, value):
    bad = tiny['stages.2.blocks.1.outer_mlp.fc1.bias'].clone()
    bad[3] = value
    before = copy.deepcopy(backbone.state_dict())
    with pytest.raises(CheckpointError, match=r'NaN or infinity: stages\.2\.blocks\.1\.outer_mlp'):
        load_pretrained(backbone, dict(tiny, **{'stages.2.blocks.1.outer_mlp.fc1.bias': bad}))
    assert_loaded(backbone, before)


def test_missing_counters_are_fine(backbone, tiny):
    weights = {key: w for key, w in tiny.items() if not key.endswith('num_batches_tracked')}
    assert not load_pretrained(backbone, weights).missing


def test_any_module_with_trunk_keys_can_be_loaded():
    class Fake(nn.Module):
        def __init__(self):
            super().__init__()
            self.stages = nn.Linear(2, 2)

    stages = nn.Linear(2, 2).requires_grad_(False)
    stages.weight.fill_(1)
    weights = OrderedDict((f'model.stages.{k}', w) for k, w in stages.state_dict().items())
    module = Fake()
    load_pretrained(module, {'model': weights})
    assert module.stages.weight.eq(1).all()


def test_adapt_is_pure(tiny):
    before = {key: weight.clone() for key, weight in tiny.items()}
    model = PyramidTNT('tiny', pretrain_img_size=256)
    own = model.state_dict()
    own_before = copy.deepcopy(own)
    adapt(tiny, own, (), find_tables(model))
    assert all(torch.equal(tiny[key], before[key]) for key in before)
    assert all(torch.equal(own[key], own_before[key]) for key in own_before)


@pytest.mark.parametrize('attack', attacks.MAIN)
def test_attacks_through_init_cfg(tmp_path, attack):
    canary = tmp_path / 'canary'
    content = {'state_dict': attacks.REFUSED[attack](canary)}
    path = attacks.write_zip(tmp_path / 'bad.pth', content)
    model = PyramidTNT('tiny', init_cfg=dict(type='Pretrained', checkpoint=str(path)))
    with pytest.raises(CheckpointError, match='refused'):
        model.init_weights()
    assert not canary.exists()


def test_stored_config_is_only_text(tmp_path, tiny):
    canary = tmp_path / 'canary'
    text = attacks.command_config(canary)
    path = saved(tmp_path / 'a.pth', attacks.store_config({'state_dict': as_detector(tiny)}, text))
    model = PyramidTNT('tiny', init_cfg=dict(type='Pretrained', checkpoint=str(path)))
    model.init_weights()
    assert read_checkpoint(path)['meta']['cfg'] == text
    assert not canary.exists()


@pytest.mark.parametrize('kind', ['.pth', '.safetensors'])
def test_missing_file(tmp_path, kind):
    with pytest.raises(CheckpointError, match=rf'gone{kind}: no such file'):
        read_checkpoint(tmp_path / f'gone{kind}')


def test_address_is_fetched_once(server):
    address, folder, _ = server
    path = saved(folder / 'w.pth', {'w': torch.ones(2)})
    assert read_checkpoint(f'{address}/w.pth?download=1')['w'].eq(1).all()
    path.unlink()
    assert read_checkpoint(f'{address}/w.pth?download=1')['w'].eq(1).all()


def test_one_name_at_two_addresses(server):
    address, folder, _ = server
    for number, name in enumerate(('one', 'two')):
        (folder / name).mkdir()
        saved(folder / name / 'epoch_12.pth', {'w': torch.full((2,), float(number))})
    for number, name in enumerate(('one', 'two')):
        assert read_checkpoint(f'{address}/{name}/epoch_12.pth')['w'].eq(number).all()


def in_torchs_hub(hub, weights):
    """Put a file where torch.hub caches downloads; return its name with the digest."""
    folder = hub / 'checkpoints'
    folder.mkdir(parents=True)
    digest = hashlib.sha256(saved(folder / 'w.pth', weights).read_bytes()).hexdigest()
    return (folder / 'w.pth').rename(folder / f'w-{digest[:8]}.pth').name


def test_file_that_torch_fetched_is_used(server):
    name = in_torchs_hub(server[2], {'w': torch.ones(2)})
    assert read_checkpoint(f'{server[0]}/{name}')['w'].eq(1).all()


def test_file_of_another_digest_is_not_used(server):
    address, folder, hub = server
    name = in_torchs_hub(hub, {'w': torch.ones(2)})
    saved(hub / 'checkpoints' / name, {'w': torch.zeros(3)})
    saved(folder / name, {'w': torch.ones(2)})
    assert read_checkpoint(f'{address}/{name}')['w'].eq(1).all()


def test_attack_from_an_address(server, tmp_path):
    address, folder, hub = server
    canary = tmp_path / 'canary'
    attacks.write_zip(folder / 'bad.pth', attacks.os_system(canary))
    with pytest.raises(CheckpointError, match=r'refused.*it came from http.*was removed'):
        read_checkpoint(f'{address}/bad.pth')
    assert not canary.exists() and not list((hub / 'checkpoints').iterdir())


@pytest.mark.parametrize('path', ['/gone.pth', ':1/w.pth'])
def test_unreachable_address_is_explained(server, path):
    address, _, hub = server
    if path.startswith(':'):
        address = 'http://127.0.0.1'  # where nobody listens
    with pytest.raises(CheckpointError, match=rf'cannot be downloaded.*put it at {hub}'):
        read_checkpoint(address + path)
    saved(cache_path(address + path), {'w': torch.ones(1)})
    assert 'w' in read_checkpoint(address + path)


def test_address_without_a_file(server):
    with pytest.raises(CheckpointError, match='contains no file name'):
        read_checkpoint(f'{server[0]}/')


def test_unknown_scheme():
    with pytest.raises(CheckpointError, match='s3:// cannot be read; download the file'):
        read_checkpoint('s3://bucket/w.pth')
