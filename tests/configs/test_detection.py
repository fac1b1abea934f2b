"""The configs of detectors: settings, a training step and a test step."""

import re
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from mmcv.ops import RoIAlign
from mmdet.structures import DetDataSample
from mmdet.testing import demo_mm_inputs
from mmengine.config import Config, ConfigDict
from mmengine.registry import HOOKS
from torch import nn

import ptnt_mm
from ptnt_mm import complexity
from ptnt_mm.models import PyramidTNTClassifier
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.workbench.check.misspelt_settings import check_spelling
from ptnt_mm.workbench.check.network import check_strides
from ptnt_mm.workbench.config import zoo
from ptnt_mm.workbench.config.build import build_by_name, build_model
from ptnt_mm.workbench.config.initial_weights import use_pretrained
from ptnt_mm.workbench.config.view import ConfigView

from .models import HOSTS, SIZES, build, narrow

DETECTORS = dict(retinanet='RetinaNet', mask_rcnn='MaskRCNN', cascade_mask_rcnn='CascadeRCNN')
SWIN_DETECTORS = dict(atss='ATSS', gfl='GFL', sparse_rcnn='SparseRCNN')
GRID = [
    *(f'{d}_ptnt_{s}_{t}' for d in DETECTORS for s in SIZES for t in ('1x', '3x', '3x_ms')),
    *(f'{d}_ptnt_{s}_3x_ms' for d in SWIN_DETECTORS for s in SIZES),
]
OPTIONS = [f'retinanet_ptnt_s_1x_{option}' for option in ('amp', 'clip', 'ema', 'lld', 'low_mem')]
OTHERS = ['dino_ptnt_s_1x', 'rtmdet_ptnt_s_1x', 'custom_coco']
MASK2FORMERS = ['mask2former_ptnt_s_50e', 'mask2former_ptnt_s_50e_panoptic']
FAMILY = ['retinanet_tnt_s_1x', 'mask_rcnn_tnt_s_1x']
PEGS = ['retinanet_ptnt_s_peg_1x', 'detr_r50_peg_50e']
PAPERS = [
    'faster_rcnn_ptnt_s_1x', 'faster_rcnn_tnt_s_1x', 'detr_ptnt_s_50e', 'detr_tnt_s_50e',
    'cascade_mask_rcnn_ptnt_s_3x_ms_giou',
]  # fmt: skip
DEMOS = [
    f'demo_{name}'
    for name in ('gfl_lite0', 'gfl_ptnt_ti', 'mask_rcnn_ptnt_ti', 'retinanet_ptnt_ti')
]
PUBLISHED = GRID + OPTIONS + OTHERS + MASK2FORMERS + FAMILY + PEGS + PAPERS + DEMOS
NAMES = [name for name in HOSTS if HOSTS[name] == 'mmdet']


@pytest.mark.parametrize('config', GRID, indirect=True, scope='module')
def test_names_say_what_is_inside(config: Config):
    name = Path(config.filename).stem
    detector, _, rest = name.partition('_ptnt_')
    size, _, schedule = rest.partition('_')
    assert config.model.type == (DETECTORS | SWIN_DETECTORS)[detector]
    assert config.model.backbone.arch == SIZES[size]
    short = schedule == '1x'
    assert config.train_cfg.max_epochs == (12 if short else 36)
    assert config.model.backbone.drop_path_rate == (0.1 if short else 0.2)
    steps = config.param_scheduler[1]
    assert (steps.end, steps.milestones) == ((12, [8, 11]) if short else (36, [27, 33]))
    choices = [t for t in config.train_dataloader.dataset.pipeline if t.type == 'RandomChoice']
    assert len(choices) == schedule.endswith('_ms')


def test_ground_truth_has_the_size_of_the_image_that_it_is_drawn_on(config: Config):
    steps = config.test_dataloader.dataset.pipeline
    kinds = [step.type for step in steps]
    (load,) = (kind for kind in kinds if 'Annot' in kind)
    assert kinds.index('Resize') < kinds.index(load)
    masks = steps[kinds.index(load)].get('with_mask', 'Panoptic' in load)
    assert masks == ('segm' in _metrics(config.test_evaluator))


def _metrics(evaluators: ConfigDict | list) -> str | list[str]:
    *others, coco = evaluators if isinstance(evaluators, list) else [evaluators]
    assert all(other.type == 'CocoPanopticMetric' for other in others)
    return coco.metric


def test_the_batch_that_the_learning_rate_is_for_is_stated(config: Config):
    demo = config.train_dataloader.batch_size  # on one process; 16 images on 8 GPUs otherwise
    name = Path(config.filename).stem
    batch = 32 if 'r50' in name else demo if name.startswith('demo') else 16
    assert config.auto_scale_lr.base_batch_size == batch


def test_masks_are_loaded_and_measured_where_there_is_a_head_for_them(config: Config):
    assert config.default_scope == 'mmdet'
    assert config.model.data_preprocessor.pad_size_divisor in (1, 32, 64)
    with_masks = 'mask' in config.filename
    if 'panoptic' not in config.filename:
        assert config.tta_model.type.endswith('InstanceTTAModel' if with_masks else 'DetTTAModel')
    assert _metrics(config.val_evaluator) == (['bbox', 'segm'] if with_masks else 'bbox')
    load = next(t for t in config.train_dataloader.dataset.pipeline if 'Annot' in t.type)
    assert load.get('with_mask', False) == with_masks


def test_a_step_of_training_reaches_every_parameter(config: Config, model: nn.Module):
    data = demo_mm_inputs(1, [[3, 97, 131]], num_classes=4, with_mask='mask' in config.filename)
    model.train()
    losses = model(**model.data_preprocessor(data, training=True), mode='loss')
    total, _ = model.parse_losses(losses)
    total.backward()
    assert torch.isfinite(total)
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    assert [name for name, p in trained if p.grad is None] == []
    model.zero_grad()


def test_predictions_at_an_odd_size(config: Config, model: nn.Module):
    data = demo_mm_inputs(1, [[3, 75, 203]], num_classes=4)
    extractors = [module for module in model.modules() if isinstance(module, RoIAlign)]
    contiguous = []
    for extractor in extractors:
        extractor.register_forward_pre_hook(
            lambda _, args: contiguous.append(args[0].is_contiguous())
        )
    model.eval()
    with torch.no_grad():
        (sample,) = model.test_step(data)
    # mmcv's RoIAlign misreads a map in channels-last order.
    assert all(contiguous) and bool(contiguous) == bool(extractors)
    assert isinstance(sample, DetDataSample)
    boxes = sample.pred_instances.bboxes
    assert boxes.shape[1] == 4 and torch.isfinite(boxes).all()
    if 'mask' in config.filename:
        assert sample.pred_instances.masks.shape[1:] == (75, 203)


@pytest.mark.parametrize(
    'name',
    [
        *(f'{d}_ptnt_s_1x' for d in DETECTORS),
        'sparse_rcnn_ptnt_s_3x_ms',
        *OTHERS[:2],
        MASK2FORMERS[0],
        FAMILY[0],
    ],
)
def test_the_real_widths_run_and_are_counted(name: str):
    model = build_by_name(name)
    if 'mask_rcnn' in name:
        model.rpn_head.test_cfg.max_per_img = 10  # regions take most of the time
    # DINO takes the best 900 places.
    size = (192, 256) if name.startswith('dino') else (96, 128)
    counted = complexity.measure_complexity(model, size).total
    assert counted.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert counted.multiply_adds > 0


def test_the_published_recipe():
    config = ptnt_mm.get_config('retinanet_ptnt_s_1x')
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ('AdamW', 1e-4, 0.05)
    warmup, steps = config.param_scheduler
    assert (warmup.end, steps.gamma) == (500, 0.1)
    assert config.train_dataloader.batch_size == 2
    resize = next(t for t in config.train_dataloader.dataset.pipeline if t.type == 'Resize')
    assert resize.scale == (1333, 800)


def test_the_anchors_strides_are_the_maps():
    for detector in DETECTORS:
        with torch.device('meta'):
            model = build(ptnt_mm.get_config(f'{detector}_ptnt_s_1x'))
        head = model.bbox_head if detector == 'retinanet' else model.rpn_head
        strides = [stride // 2 for stride in model.backbone.out_strides]
        anchors = [stride[0] for stride in head.prior_generator.strides]
        assert anchors[: len(strides)] == strides


@pytest.mark.parametrize('name', FAMILY)
def test_the_anchors_strides_are_those_of_the_simple_pyramid(name: str):
    config = ptnt_mm.get_config(name)
    with torch.device('meta'):
        model = build(config)
    head = model.bbox_head if 'retinanet' in name else model.rpn_head
    strides = [stride[0] for stride in head.prior_generator.strides]
    assert strides == list(config.model.neck.out_strides)


@pytest.mark.parametrize(
    'name', [*FAMILY, *PEGS, *PAPERS, *MASK2FORMERS, *(f'{d}_ptnt_s_3x_ms' for d in SWIN_DETECTORS)]
)
def test_the_checks_find_nothing_wrong(name: str, micro_arch: dict):
    config = ptnt_mm.get_config(name)
    strides = check_strides(ConfigView(config), build(narrow(config, micro_arch)))
    found = [*check_spelling(ConfigView(config)), *strides]
    assert {finding.severity for finding in found} == {'ok'}


def test_a_config_is_built_again_after_the_checks(micro_arch: dict):
    # mmdet's DETR writes a tensor into the settings of its head, which it then refuses.
    config = narrow(ptnt_mm.get_config('detr_r50_peg_50e'), micro_arch)
    for _ in range(2):
        build_model(config)


def test_the_recipe_of_detr_with_a_peg():
    config = ptnt_mm.get_config('detr_r50_peg_50e')
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ('AdamW', 1e-4, 1e-4)
    backbone = config.optim_wrapper.paramwise_cfg.custom_keys.backbone
    assert optimizer.lr * backbone.lr_mult == pytest.approx(2e-5)
    (steps,) = config.param_scheduler
    assert (steps.milestones, steps.gamma, steps.end) == ([40], 0.1, 50)
    assert config.train_cfg.max_epochs == 50
    assert config.train_dataloader.batch_size * 8 == config.auto_scale_lr.base_batch_size == 32


@pytest.mark.parametrize('method', ['atss', 'gfl'])
def test_the_heads_of_atss_and_gfl_are_mmdets(method: str, tmp_path: Path):
    file = tmp_path / 'theirs.py'
    file.write_text(f"_base_ = 'mmdet::{method}/{method}_r50_fpn_1x_coco.py'")
    ours = ptnt_mm.get_config(f'{method}_ptnt_s_3x_ms').model
    theirs = zoo.config_from_file(file).model
    for part in ('bbox_head', 'train_cfg', 'test_cfg'):
        assert ours[part] == theirs[part], part
    assert ours.neck[1].add_extra_convs == theirs.neck.add_extra_convs


def test_the_recipe_of_sparse_rcnn():
    config = ptnt_mm.get_config('sparse_rcnn_ptnt_s_3x_ms')
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ('AdamW', 2.5e-5, 1e-4)
    assert config.optim_wrapper.clip_grad.max_norm == 1
    assert config.model.rpn_head.num_proposals == config.model.test_cfg.rcnn.max_per_img == 300


@pytest.mark.parametrize('name', MASK2FORMERS)
def test_the_recipe_of_mask2former_is_mmdets_for_swin(name: str, tmp_path: Path):
    file = tmp_path / 'theirs.py'
    theirs = 'mask2former_swin-t-p4-w7-224_8xb2-lsj-50e_coco' + '-panoptic' * name.endswith('c')
    file.write_text(f"_base_ = 'mmdet::mask2former/{theirs}.py'")
    theirs, ours = zoo.config_from_file(file), ptnt_mm.get_config(name)
    for part in ('train_dataloader', 'val_dataloader', 'val_evaluator', 'auto_scale_lr'):
        assert ours[part] == theirs[part], part
    for part in ('optimizer', 'clip_grad'):
        assert ours.optim_wrapper[part] == theirs.optim_wrapper[part]
    assert ours.model.backbone.drop_path_rate == theirs.model.backbone.drop_path_rate
    epochs = 118_000 / 16  # in iterations
    assert ours.train_cfg.max_epochs == theirs.train_cfg.max_iters / epochs == 50
    milestones = [int(step / epochs) for step in theirs.param_scheduler.milestones]
    assert ours.param_scheduler.milestones == milestones and ours.param_scheduler.by_epoch


def test_images_of_many_sizes():
    config = ptnt_mm.get_config('mask_rcnn_ptnt_s_3x_ms')
    _, annotations, _, choice, _ = config.train_dataloader.dataset.pipeline
    (resize,), (_, _, again) = choice.transforms
    assert resize == again and annotations.with_mask
    assert [short for _, short in resize.scales] == list(range(480, 801, 32))
    assert {long for long, _ in resize.scales} == {1333}
    plain = ptnt_mm.get_config('mask_rcnn_ptnt_s_3x')
    assert plain.val_dataloader.dataset.ann_file == config.val_dataloader.dataset.ann_file


def test_averaged_weights_are_of_the_whole_model():
    config = ptnt_mm.get_config('retinanet_ptnt_s_1x_ema')
    hook = HOOKS.build(config.custom_hooks[-1])
    assert hook.ema_cfg['update_buffers'] and hook.ema_cfg['type'] == 'ExpMomentumEMA'


def test_mixed_precision_gives_finite_losses(micro_arch: dict):
    config = ptnt_mm.get_config('retinanet_ptnt_s_1x_amp')
    assert config.optim_wrapper.type == 'AmpOptimWrapper'
    assert config.optim_wrapper.dtype == 'bfloat16'
    model = build(narrow(config, micro_arch)).train()
    data = model.data_preprocessor(demo_mm_inputs(1, [[3, 97, 131]]), training=True)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        total, _ = model.parse_losses(model(**data, mode='loss'))
    total.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_little_memory_is_the_same_batch_and_model():
    plain, low = (ptnt_mm.get_config(f'retinanet_ptnt_s_1x{name}') for name in ('', '_low_mem'))
    steps = low.optim_wrapper.accumulative_counts
    assert low.train_dataloader.batch_size * steps == plain.train_dataloader.batch_size
    assert low.model.backbone.pop('with_cp')
    assert low.model == plain.model


def test_own_classes_with_masks_as_the_comment_says(tmp_path: Path):
    own = zoo.copy_config('custom_coco', tmp_path)[0]
    text, comment = own.read_text().split('# For instance masks')
    (base,) = re.findall(r'ptnt configs copy (\w+) my_configs', comment)
    (named,) = re.findall(r"_base_ to ('.+?')", comment)
    model = comment[comment.index('model =') : comment.rindex('model =')].replace('#', '')
    zoo.copy_config(base, tmp_path)
    own.write_text(text.replace("'./retinanet_ptnt_s_1x.py'", named) + model)
    heads = Config.fromfile(own).model.roi_head
    assert heads.bbox_head.num_classes == heads.mask_head.num_classes == 4


def test_the_authors_weights_reach_the_detector_whole_or_not_at_all(tmp_path: Path):
    weights = PyramidTNTClassifier('small').state_dict()
    training = dict(epoch=299, arch='ptnt_s', optimizer={}, args=Namespace(lr=1e-3), metric=82.0)
    file = tmp_path / 'authors.pth.tar'
    config = ptnt_mm.get_config('retinanet_ptnt_s_1x')
    use_pretrained(ConfigView(config), str(file))

    torch.save(dict(training, state_dict=weights), file)
    detector = build(config)
    detector.init_weights()
    trunk = detector.backbone.state_dict()
    assert all(torch.equal(trunk[key], weights[key]) for key in trunk)
    assert not detector.backbone.patch_embed.common_conv[1].weight.requires_grad

    lost = 'stages.2.blocks.1.'
    kept = {key: weight for key, weight in weights.items() if not key.startswith(lost)}
    torch.save(dict(training, state_dict=kept), file)
    with pytest.raises(CheckpointError, match=f'lacks 12 weights: {lost}.*PyramidTNT small, 256'):
        build(config).init_weights()
