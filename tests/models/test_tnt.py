"""TNT compared with timm's, and the interface of the backbone."""

import json
import re
import socket

import pytest
import torch
from mmengine.registry import MODELS

from ptnt_mm.models import TNT
from ptnt_mm.models.position_tables import resize_grid
from ptnt_mm.weights.identity import describe_network
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError

from . import golden
from .make_tnt_golden import ARCH, NAME, SIZES, features, timms

AUTHORS = dict(
    outer_pos='patch_pos',
    inner_pos='pixel_pos',
    patch_embed='pixel_embed',
    proj_norm1='norm1_proj',
    proj_norm2='norm2_proj',
    inner_norm1='norm_in',
    inner_attn='attn_in',
    inner_norm2='norm_mlp_in',
    inner_mlp='mlp_in',
    outer_norm1='norm_out',
    outer_attn='attn_out',
    outer_norm2='norm_mlp',
    outer_mlp='mlp',
)
"""timm's names by the authors'."""


def fresh(arch: dict = ARCH, **options) -> TNT:
    """A small TNT with random weights."""
    return TNT(arch, **dict(pretrain_img_size=64) | options)


def build(*arch: dict, **options) -> TNT:
    """The same with golden weights, in evaluation mode."""
    return golden.filled(fresh(*arch, **options)).eval()


def authors_weights(model: TNT) -> dict[str, torch.Tensor]:
    """The model's weights as the authors store them, with a head and their unused zeros."""
    weights = dict(model.state_dict())
    for name in [name for name in weights if name.endswith('_attn.q.weight')]:
        stem = name.removesuffix('q.weight')
        keys, values = weights.pop(f'{stem}kv.weight').chunk(2)
        weights[f'{stem}qk.weight'] = torch.cat([weights.pop(name), keys])
        weights[f'{stem}v.weight'] = values
    width = model.out_channels[0]
    head = {'head.weight': torch.zeros(10, width), 'head.bias': torch.zeros(10)}
    return weights | head | {'outer_tokens': torch.zeros(1, 16, width)}


def timms_weights(model: TNT) -> dict[str, torch.Tensor]:
    """The model's weights as timm stores them."""
    weights = {}
    for name, weight in authors_weights(model).items():
        name = '.'.join(AUTHORS.get(part, part) for part in name.split('.'))
        weights[name] = weight.mT.unflatten(2, (4, 4)) if name == 'pixel_pos' else weight
    del weights['outer_tokens']
    return weights


@pytest.mark.parametrize('size', SIZES)
@torch.inference_mode()
def test_it_is_timms_as_the_file_has_it(size):
    numbers = golden.numbers(NAME)
    shapes = json.loads(numbers[f'shapes{size}'].numpy().tobytes())
    weights = {name: golden.tensor_for(name, tuple(shape)) for name, shape in shapes.items()}
    model = TNT(ARCH, pretrain_img_size=size).eval()
    load_pretrained(model, weights, logger='silent')
    (found,) = model(golden.image(1, size, size))
    torch.testing.assert_close(found, numbers[f'map{size}'], rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize('size', [224, 384])
@torch.inference_mode()
def test_it_is_timms(size):
    reference = timms(TNT.archs['small'], size)
    model = TNT('small', pretrain_img_size=size).eval()
    report = load_pretrained(model, reference.state_dict(), logger='silent')
    assert len(report.loaded) == len(model.state_dict()) and not report.unused
    image = golden.image(1, size, size)
    torch.testing.assert_close(model(image)[0], features(reference, image), rtol=0, atol=1e-5)


@pytest.mark.parametrize('stored', [authors_weights, timms_weights, TNT.state_dict])
@torch.inference_mode()
def test_every_kind_of_checkpoint_loads_completely(stored, tmp_path):
    original = build()
    file = tmp_path / 'tnt.pth.tar'
    torch.save({'epoch': 299, 'state_dict': stored(original)}, file)
    model = MODELS.build(
        dict(
            type='TNT',
            arch=ARCH,
            pretrain_img_size=64,
            init_cfg=dict(type='Pretrained', checkpoint=str(file)),
        )
    )
    model.init_weights()
    image = golden.image(1, 70, 50)
    torch.testing.assert_close(model.eval()(image), original(image), rtol=0, atol=0)


def test_a_head_is_unused():
    report = load_pretrained(fresh(), authors_weights(build()), logger='silent')
    assert sorted(report.unused) == ['head.bias', 'head.weight', 'outer_tokens']
    assert not report.new


def test_another_pretraining_size_keeps_the_class_tokens_place():
    original, model = build(), fresh(pretrain_img_size=96)
    report = load_pretrained(model, timms_weights(original), logger='silent')
    assert report.resized == {'outer_pos': ((1, 17, 32), (1, 37, 32))}
    table, expected = model.outer_pos.detach(), original.outer_pos.detach()
    assert torch.equal(table[:, :1], expected[:, :1])
    torch.testing.assert_close(table[:, 1:], resize_grid(expected[:, 1:], (4, 4), (6, 6)))


@pytest.mark.parametrize('lost', ['norm.weight', 'cls_token', 'blocks.1.inner_attn.v.weight'])
def test_a_missing_weight_is_named(lost):
    weights = authors_weights(build())
    del weights[lost]
    with pytest.raises(CheckpointError, match=lost.replace('.v.', '.*')):
        load_pretrained(fresh(), weights)


def test_a_file_of_a_pyramid_is_refused_by_name(micro_arch):
    from ptnt_mm.models import PyramidTNT

    pyramid, model = PyramidTNT(micro_arch), build()
    with pytest.raises(CheckpointError, match='looks like PyramidTNT.*the model is TNT'):
        load_pretrained(model, pyramid.state_dict())
    with pytest.raises(CheckpointError, match='looks like TNT.*the model is PyramidTNT'):
        load_pretrained(pyramid, timms_weights(model))
    assert describe_network(authors_weights(model)) == describe_network(timms_weights(model))


def test_a_failed_download_is_explained(monkeypatch, tmp_path):
    """Like the configs' weights without a network: MMEngine would hang, or train from scratch."""
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path))

    def offline(*_, **__):
        raise OSError('Name or service not known')

    monkeypatch.setattr(socket, 'create_connection', offline)
    address = (
        'https://github.com/huawei-noah/Efficient-AI-Backbones/releases/download/tnt/a.pth.tar'
    )
    model = fresh(init_cfg=dict(type='Pretrained', checkpoint=address))
    with pytest.raises(CheckpointError) as error:
        model.init_weights()
    said = str(error.value)
    assert re.search(f'{address}: cannot be downloaded .*Name or service not known', said)
    assert f'pass the path of the file, or put it at {tmp_path}' in said


@torch.inference_mode()
def test_maps_of_several_blocks():
    model, image = build(out_indices=(0, -1)), golden.image(1, 40, 72)
    first, last = model(image)
    assert model.out_indices == (0, 1)
    torch.testing.assert_close(last, build()(image)[0], rtol=0, atol=0)
    short = fresh(out_indices=(0,)).eval()
    assert not short.load_state_dict(model.state_dict(), strict=False).missing_keys
    assert not hasattr(short.norm, 'weight') and len(short.blocks) == 1
    torch.testing.assert_close(short(image)[0], first, rtol=0, atol=0)


@torch.inference_mode()
def test_tokens_hold_the_class_token_in_front():
    model, image = build(), golden.image(2, 40, 72)
    ((inner, outer, hw),) = model.forward_tokens(image)
    assert (inner.shape, outer.shape, hw) == ((2 * 15, 16, 8), (2, 16, 32), (3, 5))
    assert torch.equal(model(image)[0], outer[:, 1:].mT.unflatten(2, hw))


@pytest.mark.parametrize('words', [4, 16, 64])
@torch.inference_mode()
def test_the_number_of_words_is_data(words):
    model = build(ARCH | dict(words=words))
    ((inner, _, _),) = model.forward_tokens(golden.image(1, 32, 32))
    assert inner.shape == (4, words, 8)
    assert model.inner_pos.shape == (1, words, 8)


@torch.inference_mode()
def test_words_of_a_patch_see_nothing_of_its_neighbours():
    model, image = build(), golden.image(1, 32, 32)
    other = image.clone()
    other[:, :, 16:] += 1
    before, after = (model.patch_embed(one)[0].unflatten(0, (2, 2)) for one in (image, other))
    assert torch.equal(before[0], after[0])
    assert not torch.allclose(before[1], after[1])


OPTIONS = [
    dict(position='sinusoidal'),
    dict(position='none'),
    dict(position='peg'),
    dict(word_position='sinusoidal'),
    dict(word_position='none'),
    dict(with_se=True),
    dict(stem='conv'),
    dict(inner_blocks=(0,)),
    dict(inner_blocks=()),
    dict(position='relative_2d'),
    dict(position='relative_shaw'),
]


@pytest.mark.parametrize('options', OPTIONS, ids=str)
@torch.inference_mode()
def test_options_that_change_the_numbers(options):
    plain, model, image = build(), build(**options), golden.image(1, 40, 72)
    assert not torch.allclose(model(image)[0], plain(image)[0], atol=1e-3)


@torch.inference_mode()
def test_tables_can_be_off():
    names = {name for name, _ in build(position='none', word_position='none').named_parameters()}
    assert not names & {'outer_pos', 'inner_pos'}


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(arch='smal'), "unknown arch 'smal': did you mean 'small'?"),
        (dict(arch=ARCH | dict(depth=0)), "arch['depth'] is 0: expected an integer above 0"),
        (dict(arch=ARCH | dict(words=25)), "arch['words'] is 25: expected 4, 16 or 64"),
        (
            dict(out_indices=(2,)),
            'out_indices is (2,): expected increasing indices of blocks from 0 to 1',
        ),
        (dict(pretrain_img_size=100), 'pretrain_img_size is 100: expected a multiple of 16'),
        (
            dict(out_indices=(0,), position=dict(type='peg', blocks=(1,))),
            'blocks of a PEG are (1,): expected some of -1, the input, to 0, the last of 1 blocks',
        ),
        (dict(word_position='peg'), "unknown word_position 'peg'"),
    ],
    ids=str,
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TNT(**dict(arch=ARCH) | options)


@pytest.mark.parametrize('position', ['relative_2d', 'relative_shaw'])
def test_tables_of_offsets_are_converted_on_loading(position: str):
    trained, larger = (
        TNT(ARCH, position=position, pretrain_img_size=size).eval() for size in (64, 96)
    )
    torch.nn.init.normal_(trained.relative_pos)
    report = load_pretrained(larger, trained.state_dict())
    assert list(report.resized) == ['relative_pos']
    image = torch.randn(1, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(larger(image), trained(image))


def test_a_table_of_other_heads_is_refused():
    weights = fresh(position='relative_2d').state_dict()
    weights['relative_pos'] = torch.zeros(1, 49, 3)
    with pytest.raises(CheckpointError, match='relative_pos'):
        load_pretrained(fresh(position='relative_2d'), weights)


def test_what_a_subclass_may_lack_stays():
    class Shallow(TNT):
        pretrained_may_lack = ('blocks.1',)

    model = Shallow(ARCH, position='relative_2d', pretrain_img_size=64)
    assert set(model.pretrained_may_lack) == {'blocks.1', 'relative_pos'}
