"""Counts compared with hand-derived formulas and with the published figures."""

import json
import re
import sys
from math import ceil, prod

import pytest
import torch
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.flop_counter import FlopCounterMode

from ptnt_mm.complexity import measure_complexity
from ptnt_mm.models import TNT, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.models.kernels.slicewise import slicewise
from ptnt_mm.models.position_tables import Factors
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run as run_command
from ptnt_mm.workbench.config.build import build_by_name

pytestmark = pytest.mark.slow


ARCH = dict(
    depths=(1, 3, 1, 2),
    inner_depths=(1, 2, 1, 1),
    outer_dims=(8, 12, 16, 24),
    inner_dims=(2, 4, 6, 8),
    outer_heads=(2, 3, 4, 6),
    inner_heads=(1, 2, 3, 4),
    pretrain_img_size=64,
)
REDUCTIONS = (4, 2, 1, 1)
CLASSES = 7
# Merges 12x20 sentences to 6x10, then 3x5, then, with odd sides, 2x3.
SHAPE = (96, 160)
GRIDS = ((12, 20), (6, 10), (3, 5), (2, 3))


def stage_numbers(i: int) -> tuple[int, int, int, int]:
    """Sentences, pooled sentences, outer width, inner width."""
    pooled = prod(ceil(side / REDUCTIONS[i]) for side in GRIDS[i])
    return prod(GRIDS[i]), pooled, ARCH['outer_dims'][i], ARCH['inner_dims'][i]


@pytest.fixture(scope='module', params=['eager', 'fused'])
def counted(request):
    """The fused form costs as much: what it adds to queries and keys is not counted."""
    model = PyramidTNTClassifier(ARCH, num_classes=CLASSES, attention=request.param)
    return measure_complexity(model, SHAPE)


def part(complexity, name):
    return next(part for part in complexity.parts if part.name == name)


@pytest.mark.parametrize('stage', range(4))
def test_inner_share_of_a_stage(counted, stage):
    n, _, outer, inner = stage_numbers(stage)
    blocks = ARCH['inner_depths'][stage]
    found = part(counted, f'stage {stage + 1} inner')
    # Words: q, k, v, projection (4 c^2), MLP (8 c^2); a sentence: its 16 words to its own width.
    assert found.operations['linear'] == blocks * n * (16 * 12 * inner**2 + 16 * inner * outer)
    assert found.attention_products == blocks * n * 16 * 16 * 2 * inner
    assert found.operations['layer_norm'] == blocks * n * 5 * (3 * 16 * inner + outer)
    biases = inner + 5 * inner
    norms = 2 * (3 * 16 * inner + outer)
    assert found.parameters == blocks * (12 * inner**2 + biases + 16 * inner * outer + norms)


@pytest.mark.parametrize('stage', range(4))
def test_outer_share_of_a_stage(counted, stage):
    n, m, width, _ = stage_numbers(stage)
    blocks, reduced = ARCH['depths'][stage], REDUCTIONS[stage] > 1
    found = part(counted, f'stage {stage + 1} outer')
    # Queries, projection and MLP on all sentences; keys, values and the reduction on pooled ones.
    linear = n * 10 * width**2 + m * (2 + reduced) * width**2
    assert found.operations['linear'] == blocks * linear
    assert found.attention_products == blocks * n * m * 2 * width
    assert found.operations['layer_norm'] == blocks * 5 * width * (2 * n + reduced * m)
    weights = (12 + reduced) * width**2 + (1 + 5 + reduced) * width + 2 * (2 + reduced) * width
    side = ARCH['pretrain_img_size'] // 8 // 2**stage
    table = ARCH['outer_heads'][stage] * side**2 * (side // REDUCTIONS[stage]) ** 2
    assert found.parameters == blocks * weights + table


def test_stem_merges_and_head(counted):
    pixels, (c, *_), (outer, *_) = prod(SHAPE), ARCH['inner_dims'], ARCH['outer_dims']
    half, quarter, eighth = pixels // 4, pixels // 16, pixels // 64
    stem = part(counted, 'stem')
    assert stem.operations['conv'] == 9 * (
        half * (6 * c + 2 * c * c) + quarter * 8 * c * c + eighth * (32 * c * c + 8 * c * outer)
    )
    assert stem.operations['batch_norm'] == 2 * (
        half * 3 * c + quarter * 4 * c + eighth * (8 * c + outer)
    )
    merged = 0
    for i in range(3):
        _, _, wide, narrow = stage_numbers(i)
        n, _, wider, less_narrow = stage_numbers(i + 1)
        merged += n * 9 * (wide * wider + 16 * narrow * less_narrow)
    assert part(counted, 'merges').operations['conv'] == merged
    head = part(counted, 'head')
    assert head.operations['linear'] == ARCH['outer_dims'][3] * CLASSES
    assert head.parameters == 24 * 2 + 24 * CLASSES + CLASSES


def test_parts_add_up_to_the_whole_model(counted):
    model = PyramidTNTClassifier(ARCH, num_classes=CLASSES)
    assert counted.total.parameters == sum(parameter.numel() for parameter in model.parameters())
    shares = {f'stage {number} {kind}' for number in range(1, 5) for kind in ('inner', 'outer')}
    assert {part.name for part in counted.parts} == {'stem', 'merges', 'head', *shares}
    assert counted.total.multiply_adds == sum(part.multiply_adds for part in counted.parts)
    assert 'softmax' in counted.not_counted


def test_output_norms_are_a_part():
    model = PyramidTNT(ARCH, out_indices=(0,), out_norms=True)
    n, _, width, _ = stage_numbers(0)
    assert part(measure_complexity(model, SHAPE), 'output norms').multiply_adds == 5 * n * width


def without_values(arch: str) -> nn.Module:
    """A classifier with uninitialised weights: drawing them takes longer than a count."""
    with torch.device('meta'):
        model = build_by_name(arch)
    return model.to_empty(device='cpu')


# Parameters in M, multiply-adds in G with attention products, as the authors' code was counted.
@pytest.mark.parametrize(
    ('arch', 'size', 'parameters', 'multiply_adds'),
    [
        ('tiny', 192, 10.58, 0.59),
        ('small', 256, 31.95, 3.30),
        ('medium', 256, 84.94, 8.24),
        ('base', 256, 156.99, 16.01),
    ],
)
def test_published_figures(arch, size, parameters, multiply_adds):
    total = measure_complexity(without_values(arch), (size, size)).total
    assert round(total.parameters / 1e6, 2) == parameters
    assert round(total.multiply_adds / 1e9, 2) == multiply_adds


# arXiv 2103.00112 has 23.8 M and 65.6 M, 5.2 G and 14.1 G; timm's TNT-B has 65.43 M, too.
@pytest.mark.parametrize(
    ('arch', 'parameters', 'multiply_adds'),
    [('tnt_small', 23.77, 5.25), ('tnt_base', 65.43, 14.10), ('cpvt_tiny', 5.68, 1.26)],
)
def test_published_figures_of_one_scale(arch, parameters, multiply_adds):
    found = measure_complexity(without_values(arch), (224, 224))
    assert round(found.total.parameters / 1e6, 2) == parameters
    assert round(found.total.multiply_adds / 1e9, 2) == multiply_adds
    words = {'inner'} if 'tnt' in arch else set()
    assert {part.name for part in found.parts} == {'stem', 'outer', 'output norms', 'head', *words}


def test_what_retinanet_costs():
    found = measure_complexity(build_by_name('retinanet_ptnt_s_1x'), (256, 256))
    total = found.total
    # Without attention products all cost grows with the pixels, except for the rounding of the two
    # coarsest levels: what 256x256 costs gives the 225.7 G at 800x1280 of
    # docs/research/complexity.md.
    scale = (800 * 1280) / (256 * 256)
    assert total.without_attention_products * scale == pytest.approx(225.7e9, rel=5e-3)
    # Blocks * sentences * pooled sentences * 2 * width.
    outer = 2 * 1024 * 64 * 256 + 8 * 256 * 64 * 512 + 4 * 64 * 64 * 1024 + 2 * 16 * 16 * 1024
    assert total.operations['matmul'] == outer
    assert {'stem', 'neck', 'bbox_head'} <= {part.name for part in found.parts}


def test_parts_of_a_segmenter():
    found = measure_complexity(build_by_name('semantic_fpn_ptnt_ti_40k_ade20k'), (64, 128))
    assert {'stem', 'neck', 'decode_head', 'other'} <= {part.name for part in found.parts}
    # Strides 4 to 32 come to stride 4 by 1, 1, 2 and 3 convolutions, each but the first halved.
    pixels = {stride: 64 * 128 // stride**2 for stride in (4, 8, 16, 32)}
    first = 9 * 256 * 128 * sum(pixels.values())
    further = 9 * 128 * 128 * (pixels[8] + pixels[16] + pixels[8])
    head = part(found, 'decode_head')
    assert head.operations['conv'] == first + further + pixels[4] * 128 * 150
    norms = 7 * 2 * 128
    assert head.parameters == 9 * 128 * (4 * 256 + 3 * 128) + norms + 128 * 150 + 150


def test_a_segmenter_whose_head_needs_samples():
    model = build_by_name('mask2former_ptnt_s_160k_ade20k')
    found = measure_complexity(model, (64, 64))
    assert part(found, 'decode_head').multiply_adds > 0
    assert 'forward' not in vars(model.decode_head)


def test_a_head_that_only_training_uses():
    found = measure_complexity(build_by_name('upernet_ptnt_ti_160k_ade20k'), (64, 64))
    auxiliary = part(found, 'auxiliary_head')
    assert auxiliary.parameters == 9 * 320 * 256 + 2 * 256 + 256 * 150 + 150
    assert auxiliary.multiply_adds == 0 < part(found, 'decode_head').multiply_adds


class Fused(nn.Module):
    def forward(self, x):
        """Three heads; 5 queries of width 4, 7 keys, values of width 6."""
        q, k, v = (x.new_ones(2, 3, *size) for size in ((5, 4), (7, 4), (7, 6)))
        return F.scaled_dot_product_attention(q + x.sum(), k, v)


def test_fused_attention_counts_both_products():
    total = measure_complexity(Fused(), (8, 8)).total
    assert total.attention_products == total.multiply_adds == 2 * 3 * 5 * 7 * (4 + 6)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.ConvTranspose2d(3, 3, 2, stride=2, bias=False)
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x))


def test_shared_and_transposed_convolutions():
    total = measure_complexity(Shared(), (8, 8)).total
    weights = 3 * 3 * 2 * 2
    assert total.parameters == weights
    # Every input pixel meets every weight; the second call has four times as many.
    assert total.multiply_adds == weights * (64 + 256)


class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.ones(3, 5))
        self.conv = nn.Conv2d(3, 3, 1, bias=False)

    def forward(self, x):
        return self.conv(x).flatten(2).transpose(1, 2) @ self.query


def test_what_a_model_owns_itself_is_counted_too():
    found = measure_complexity(Bare(), (8, 8))
    rows = [(part.name, part.parameters, part.multiply_adds) for part in found.parts]
    assert rows == [('conv', 9, 64 * 9), ('query', 15, 0), ('other', 0, 64 * 3 * 5)]


class Host(BaseModel):
    """Like a two-stage detector: it asks for the size of the image."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 1)

    def forward(self, inputs, data_samples=None, mode='loss'):
        assert mode == 'tensor'
        assert not self.training
        height, width = data_samples[0].metainfo['img_shape']
        return self.conv(inputs[..., :height, :width])


def test_complete_models_get_their_inputs_and_stay_unchanged():
    model = Host()
    assert measure_complexity(model, (8, 16)).total.multiply_adds == 3 * 2 * 8 * 16
    assert model.training
    assert 'forward' not in vars(model)


def test_modes_and_numbers():
    """Parts that were put in evaluation mode stay in it; operations are integers."""
    row = dict(depth=1, outer_dim=16, inner_dim=4, outer_heads=2, inner_heads=2, words=16)
    model = TNT(row, position='relative_shaw').bfloat16()
    model.patch_embed.eval()
    counted = measure_complexity(model, (32, 32)).total.multiply_adds
    assert isinstance(counted, int) and counted > 0
    assert model.training and not model.patch_embed.training


def run(*arguments):
    return run_command('complexity', [str(argument) for argument in arguments])


def test_tool_prints_the_table_and_writes_json(tmp_path, capsys):
    file = tmp_path / 'cost.json'
    assert run('small', '--shape', 256, 256, '--json', file) == 0
    *_, total = capsys.readouterr().out.splitlines()
    assert total.replace(' ', '') == '|total|31.95M|3.30G|3.18G|'
    written = json.loads(file.read_text())
    assert written['model'] == 'small'
    assert written['shape'] == [256, 256]
    assert written['total']['parameters'] == 31953200
    assert [path.name for path in tmp_path.iterdir()] == ['cost.json']


def test_tool_prints_json_and_replaces_a_file_only_on_request(tmp_path, capsys):
    file = tmp_path / 'cost.json'
    file.write_text('mine')
    words = ('tiny', '--shape', 64, 64, '--format', 'json', '--json', file)
    assert run(*words) == 1
    assert file.read_text() == 'mine'
    assert 'exists: choose another name, or pass --overwrite' in capsys.readouterr().err
    assert run(*words, '--overwrite') == 0
    assert json.loads(capsys.readouterr().out) == json.loads(file.read_text())


def test_options_change_the_config_that_is_counted(tmp_path, capsys):
    file = tmp_path / 'backbone.py'
    file.write_text("model = dict(type='PyramidTNT', arch='tiny')\n")
    changes = ('model.position=none', 'model.arch.inner_heads=(1, 1, 1, 1)')
    words = (file, '--shape', 64, 64, '--format', 'json', '--cfg-options', *changes)
    assert run(*words) == 0
    arch = dict(PyramidTNT.archs['tiny'], inner_heads=(1, 1, 1, 1))
    model = PyramidTNT(arch, position='none')
    total = json.loads(capsys.readouterr().out)['total']
    assert total['parameters'] == sum(p.numel() for p in model.parameters())
    assert total['multiply_adds'] == measure_complexity(model, (64, 64)).total.multiply_adds


@MODELS.register_module()
class Loud(Bare):
    def __init__(self):
        print('to_onehot is set')
        super().__init__()


def test_json_has_standard_output_to_itself(tmp_path, capsys):
    """mmpretrain logs to it while it builds some models."""
    file = tmp_path / 'loud.py'
    file.write_text("model = dict(type='Loud')\n")
    assert run(file, '--shape', 8, 8, '--format', 'json') == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)['model'] == str(file) and 'to_onehot is set' in printed.err


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('smal', '--shape', 256, 256), "unknown arch or config 'smal': did you mean 'small'?"),
        (('configs/retinanet_ptnt_x.py', '--shape', 256, 256), 'there is no config file'),
        (('tiny', '--shape', 7, 256), 'at least 8x8 pixels, one token, but got 7x256'),
        (('tnt_small', '--shape', 15, 256), 'at least 16x16 pixels, one token'),
        (('tiny', '--shape', 64, 64, '--cfg-options', 'model.a=1'), 'tiny is an arch, without'),
        (('retinanet_ptnt_s_1x', '--shape', 64, 64, '--cfg-options', 'modle.a=1'), "'model'?"),
        (('tiny', '--shape', 64, 64, '--json', 'nowhere/cost.json'), 'there is no folder nowhere'),
    ],
)
def test_tool_explains_bad_input(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 1
    assert message in capsys.readouterr().err


def test_a_detector_without_mmdet(tmp_path, monkeypatch):
    config = tmp_path / 'detector.py'
    config.write_text("default_scope = 'mmdet'\nmodel = dict(type='RetinaNet')\n")
    monkeypatch.setitem(sys.modules, 'mmdet', None)
    with pytest.raises(UserError, match=r'mmdet cannot be imported: .*mmdet.*ptnt doctor'):
        build_by_name(str(config))


@pytest.mark.parametrize('name', ['config.py', '.'])
def test_a_config_or_a_project_without_a_model(tmp_path, monkeypatch, name: str):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'config.py').write_text('max_epochs = 1\n')
    with pytest.raises(UserError, match='config.py lacks model'):
        build_by_name(name)


@pytest.mark.parametrize('attention', ['eager', 'fused'])
@pytest.mark.parametrize('size', [(64, 64), (320, 416)])
def test_torch_counts_the_same(attention, size):
    """FlopCounterMode without the resizing of tables, in products; a norm has none."""
    model = PyramidTNTClassifier(ARCH, num_classes=CLASSES, attention=attention).eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, 3, *size))
    counts = {name: sum(of.values()) for name, of in counter.get_flop_counts().items()}

    def total(parts: str) -> int:
        return sum(n for name, n in counts.items() if re.fullmatch(rf'\w+\.({parts})', name))

    whole = total(r'patch_embed|norm|head|\w+\.\d')
    resizing = counter.get_total_flops() - whole + total(r'stages\.\d') - total(r'.+\.blocks\.\d')
    operations = measure_complexity(model, size).total.operations
    products = ('conv', 'linear', 'matmul', 'scaled_dot_product_attention')
    expected = sum(operations[name] for name in products)
    assert (counter.get_total_flops() - resizing) / 2 == expected


def test_torch_counts_five_products_in_the_backward_pass():
    """Of the attention with a table, as of torch's kernels: weights are computed again."""
    q, k, v = (torch.zeros(2, 3, n, 4, requires_grad=True) for n in (70, 12, 12))
    factors = Factors(torch.zeros(1, 3, 70, 6), torch.zeros(3, 2), torch.zeros(4, 3))
    with FlopCounterMode(display=False) as counter:
        slicewise(q, k, v, factors).sum().backward()
    assert counter.get_total_flops() == (2 + 5) * 2 * (2 * 3 * 70 * 12 * 4)
