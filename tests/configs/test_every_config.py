"""Every config of the package: properties that all of them share."""

import ast
import copy
import re
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from torch import nn

from ptnt_mm.models import PyramidTNT, TimmFeatures
from ptnt_mm.models.backbone import read_arch
from ptnt_mm.workbench.config import zoo
from ptnt_mm.workbench.config.hosts import HOSTS
from ptnt_mm.workbench.config.safeguards import added_hooks
from ptnt_mm.workbench.config.settings import type_name
from reproduction.entries import NETWORKS

from . import test_classification, test_detection, test_rotated, test_segmentation
from .conftest import SAME_MODEL
from .models import HOSTS as OF_HOSTS
from .models import build, necks, squeezed

NAMES = sorted(OF_HOSTS)
FILES = sorted(zoo.config_root().rglob('*.py'))
SPARED = ('backbone.outer_pos', 'backbone.inner_pos', 'backbone.cls_token')


def _decays(wrapper, model: nn.Module) -> dict[str, float]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = wrapper.optimizer.param_groups
    return {names[id(p)]: group['weight_decay'] for group in groups for p in group['params']}


@pytest.fixture(scope='module')
def blueprint(config: Config) -> nn.Module:
    """The model at full width, without memory for its weights."""
    with torch.device('meta'):
        return build(config)


def test_what_was_published_is_there():
    files = (test_classification, test_detection, test_rotated, test_segmentation)
    published = {name for file in files for name in file.PUBLISHED}
    assert not published - set(zoo.config_names()), 'configs that were published may not go'
    assert sorted(name for file in files for name in file.NAMES) == NAMES


@pytest.mark.parametrize('name', NAMES)
def test_a_config_states_its_model_as_one_dict(name: str):
    text = zoo.config_path(name).read_text()
    assert len(re.findall('^model = ', text, re.MULTILINE)) <= 1


@pytest.mark.parametrize('file', FILES, ids=[file.stem for file in FILES])
def test_a_config_only_assigns_names(file: Path):
    """It changes nothing in its bases, so that it is understood without them."""
    for statement in ast.parse(file.read_text()).body:
        assert isinstance(statement, ast.Assign), ast.unparse(statement)
        assert all(isinstance(target, ast.Name | ast.Tuple) for target in statement.targets)


SIZE = rf'_(?:{"|".join(NETWORKS.keys() - {"r50"})})_([a-z]+)'


@pytest.mark.parametrize(
    'config', [name for name in NAMES if re.search(SIZE, name)], indirect=True, scope='module'
)
def test_the_size_in_a_name_is_the_variants(config: Config):
    size = re.search(SIZE, Path(config.filename).stem)
    assert config.model.backbone.arch.startswith(size[1])


@pytest.mark.parametrize(
    'config', [name for name in NAMES if 'r50' not in name], indirect=True, scope='module'
)
def test_the_necks_channels_are_the_backbones(config: Config, blueprint: nn.Module):
    widths = list(blueprint.backbone.out_channels)
    backbone = blueprint.backbone
    if not isinstance(backbone, TimmFeatures):
        row = read_arch(config.model.backbone.arch, backbone.archs)
        if isinstance(backbone, PyramidTNT):
            assert widths == [row['outer_dims'][i] for i in backbone.out_indices]
        else:
            assert set(widths) == {row.get('outer_dim') or row['dim']}
    if config.default_scope == 'mmpretrain':
        assert [config.model.head.in_channels] == widths
    elif config.model.type == 'DETR':
        assert necks(config)[-1].in_channels == widths
    elif isinstance(backbone, (PyramidTNT, TimmFeatures)):
        for neck in necks(config):
            assert neck.in_channels == widths
            if neck.type == 'FinerLevelNeck':
                widths = [widths[0], *widths]
    else:
        assert {necks(config)[0].in_channels} == set(widths)


def test_weights_that_can_be_fetched_are_named(config: Config):
    """TNT's have a plain address; PyramidTNT's have none."""
    weights = (config.model.backbone.get('init_cfg') or {}).get('checkpoint', '')
    pretrains = 'imagenet' in config.filename and '_384_' not in config.filename
    is_tnt = type_name(config.model.backbone) == 'TNT' and not pretrains
    name = dict(small='tnt_s', base='tnt_b').get(config.model.backbone.get('arch'))
    assert (weights == name) == is_tnt


def test_images_are_scaled_as_for_the_published_weights(config: Config):
    scale = config.model.data_preprocessor
    if config.model.backbone.type == 'ResNet':
        assert scale.mean == [123.675, 116.28, 103.53]  # torchvision's
    else:
        assert scale.mean == scale.std == [127.5] * 3
    reads_files = not config.train_dataloader.dataset.type.startswith('CIFAR')
    assert scale.get(HOSTS[config.default_scope].to_rgb) == reads_files


def test_weight_decay_spares_what_the_authors_spared(config: Config, blueprint: nn.Module):
    decay = config.optim_wrapper.optimizer.weight_decay
    settings = copy.deepcopy(config.optim_wrapper)
    settings.type = 'OptimWrapper'  # the one for mixed precision needs an accelerator
    settings.pop('dtype', None)
    decays = _decays(build_optim_wrapper(blueprint, settings), blueprint)
    assert decays.keys() == {name for name, p in blueprint.named_parameters() if p.requires_grad}
    decays_all = config.model.backbone.type == 'ResNet'  # DETR's recipe
    keys = config.optim_wrapper.paramwise_cfg.get('custom_keys', {})
    named = [key for key, value in keys.items() if value.get('decay_mult') == 0]  # Mask2Former's
    for name, parameter in blueprint.named_parameters():
        if not parameter.requires_grad:
            continue
        spared = not decays_all and (parameter.dim() == 1 or name in SPARED)
        spared |= any(key in name for key in named)
        assert decays[name] == (0.0 if spared else decay), name
    relative = 'backbone.stages.0.relative_pos'
    assert decays.get(relative, decay) == (0.0 if named else decay)


def test_loading_is_guarded_and_checkpoints_are_whole(config: Config):
    # The workbench adds the last one itself.
    added = {hook.type for hook in added_hooks()} - {'HealthHook'}
    assert {hook.type for hook in config.custom_hooks} >= added
    assert config.default_hooks.checkpoint.type == 'WholeCheckpointHook'
    assert config.custom_imports.imports == ['ptnt_mm', 'ptnt_mm.weights.safe_loading']
    assert not config.auto_scale_lr.get('enable')


@pytest.mark.parametrize(
    ('name', 'head'),
    [('custom_coco', 'bbox_head'), ('custom_seg', 'decode_head'), ('custom_cls', 'head')],
)
def test_own_classes_and_folder_feed_everything(tmp_path: Path, name: str, head: str):
    own = tmp_path / f'{name}.py'
    zoo.copy_config(name, tmp_path)
    text = re.sub(r"'data/custom\w*/'", "'elsewhere/'", own.read_text())
    own.write_text(re.sub(r"\(.*'ball', 'coin', 'crate', 'cup'\)", "('sea', 'sky')", text))
    config = zoo.config_from_file(own)
    assert config.model[head].num_classes == 2
    assert config.model.data_preprocessor.get('num_classes', 2) == 2
    for split in ('train', 'val', 'test'):
        dataset = config[f'{split}_dataloader'].dataset
        assert (dataset.metainfo.classes, dataset.data_root) == (('sea', 'sky'), 'elsewhere/')
        assert not any(step.get('reduce_zero_label') for step in dataset.pipeline)
    for evaluator in (config.val_evaluator, config.test_evaluator):
        assert evaluator.get('ann_file', 'elsewhere/').startswith('elsewhere/')


# The images of DETRs are not padded, and no map is resized; Mask2Former's decoder needs values.
RESIZED = [
    name
    for name, host in OF_HOSTS.items()
    if host != 'mmpretrain' and not re.search(f'^detr|^dino|^mask2former|{SAME_MODEL}', name)
]


@pytest.mark.parametrize('config', RESIZED, indirect=True, scope='module')
def test_no_map_is_squeezed(config: Config, blueprint: nn.Module):
    stated = config.model.data_preprocessor
    assert not squeezed(blueprint, stated.get('pad_size_divisor') or stated.test_cfg.size_divisor)
