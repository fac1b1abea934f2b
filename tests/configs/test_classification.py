"""The configs of classifiers: settings, two training steps, and complete checkpoints."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain.structures import DataSample
from PIL import Image
from torch import nn

import ptnt_mm
from ptnt_mm import api, complexity
from ptnt_mm.models import CPVT, TNT, PlainClassifier, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.weights.mmengine import load_strictly
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.workbench.check.inspection import check_before_training
from ptnt_mm.workbench.check.misspelt_settings import check_spelling
from ptnt_mm.workbench.config.build import build_by_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.runner import build_runner

from .models import HOSTS, PLAIN, SIZES, build, narrow

PYRAMIDS = [f'classifier_ptnt_{size}_300e_imagenet' for size in SIZES]
TNTS = [f'classifier_tnt_{size}_300e_imagenet' for size in 'sb']
CPVTS = [f'classifier_cpvt_{size}_300e_imagenet' for size in ('ti', 's', 'b')]
IMAGENET = PYRAMIDS + TNTS + CPVTS
CLASSES = dict(
    ImageNet=1000, CIFAR10=10, CIFAR100=100, Flowers102=102, OxfordIIITPet=37, CustomDataset=1010
)
TUNED = dict(
    cifar10='CIFAR10', cifar100='CIFAR100', flowers='Flowers102', pets='OxfordIIITPet',
    inat19='CustomDataset', imagenet='ImageNet',
)  # fmt: skip
FINE_TUNING = [f'classifier_tnt_{size}_384_{data}' for size in 'sb' for data in TUNED]
GAP = 'classifier_cpvt_ti_gap_300e_imagenet'
PUBLISHED = [*IMAGENET, *FINE_TUNING, GAP, 'custom_cls', 'demo_classifier_ptnt_ti']
NAMES = [name for name in HOSTS if HOSTS[name] == 'mmpretrain']

ROWS = dict(ptnt=PyramidTNT.archs, tnt=TNT.archs, cpvt=CPVT.archs)


def name_of(config: Config) -> str:
    return Path(config.filename).stem


@pytest.mark.parametrize('config', IMAGENET + FINE_TUNING, indirect=True, scope='module')
def test_names_say_what_is_inside(config: Config):
    _, family, size, _, data = name_of(config).split('_')
    assert config.model.backbone.arch == SIZES[size]
    assert SIZES[size] in ROWS[family]
    kind = config.train_dataloader.dataset.type
    assert kind == TUNED.get(data, 'ImageNet')
    assert config.model.head.num_classes == CLASSES[kind]


def test_the_numbers_of_classes_agree(config: Config):
    classes = config.model.head.num_classes
    assert config.model.data_preprocessor.num_classes == classes
    topk = config.val_evaluator.topk
    assert max(topk) <= classes and config.test_evaluator.topk == topk
    assert config.default_scope == 'mmpretrain'


def test_images_have_the_size_of_the_tables(config: Config):
    steps = {step.type: step for step in config.train_dataloader.dataset.pipeline}
    side = steps['RandomResizedCrop'].scale
    backbone = config.model.backbone
    is_pyramid = backbone.type == 'PyramidTNT'
    default = ROWS['ptnt'][backbone.arch]['pretrain_img_size'] if is_pyramid else 224
    assert backbone.get('pretrain_img_size', default) == side
    tested = config.test_dataloader.dataset.pipeline
    assert tested == config.val_dataloader.dataset.pipeline
    crop = next((step.crop_size for step in tested if step.type == 'CenterCrop'), None)
    if crop is not None:
        assert crop == side
        edge = next(step.scale for step in tested if step.type == 'ResizeEdge')
        assert edge == int(side / 0.9)


@pytest.mark.parametrize('name', IMAGENET)
def test_the_recipe_is_the_authors(name: str):
    config = ptnt_mm.get_config(name)
    images, lr, warm_up = {'tnt': (1024, 1e-3, 5), 'cpvt': (2048, 2e-3, 5)}.get(
        name.split('_')[1], (1024, 1e-3, 20)
    )
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ('AdamW', lr, 0.05)
    assert config.auto_scale_lr.base_batch_size == 8 * config.train_dataloader.batch_size == images
    warm, cosine = config.param_scheduler
    assert lr * warm.start_factor == pytest.approx(1e-6)
    assert warm.end == cosine.begin == warm_up
    assert cosine.end == cosine.begin + cosine.T_max == config.train_cfg.max_epochs == 300
    assert config.model.backbone.drop_path_rate == 0.1
    assert config.model.head.loss.label_smooth_val == 0.1
    augments = {one.type: one.alpha for one in config.model.train_cfg.augments}
    assert augments == dict(Mixup=0.8, CutMix=1.0)
    assert config.train_dataloader.sampler == dict(type='RepeatAugSampler', num_repeats=3)
    steps = {step.type: step for step in config.train_dataloader.dataset.pipeline}
    chosen = steps['RandAugment']
    assert (chosen.policies, chosen.magnitude_level, chosen.magnitude_std) == (
        'timm_increasing', 9, 0.5,
    )  # fmt: skip
    assert steps['RandomErasing'].erase_prob == 0.25
    (average,) = (hook for hook in config.custom_hooks if hook.type == 'EMAHook')
    assert 1 - average.momentum == pytest.approx(0.99996)


@pytest.mark.parametrize('name', FINE_TUNING)
def test_fine_tuning_is_deits(name: str):
    config = ptnt_mm.get_config(name)
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ('SGD', 0.01, 1e-4)
    assert config.auto_scale_lr.base_batch_size == 8 * config.train_dataloader.batch_size == 768
    assert config.param_scheduler[-1].end == config.train_cfg.max_epochs == 1000
    assert config.model.backbone.drop_path_rate == 0
    kinds = {step.type for step in config.train_dataloader.dataset.pipeline}
    assert 'RandAugment' in kinds and 'RandomErasing' not in kinds
    assert not [hook for hook in config.custom_hooks if hook.type == 'EMAHook']
    # The pixels of a file come as BGR, those of CIFAR as RGB.
    assert config.model.data_preprocessor.to_rgb == ('LoadImageFromFile' in kinds)
    name = dict(small='tnt_s', base='tnt_b')[config.model.backbone.arch]
    assert config.model.backbone.init_cfg.checkpoint == name


def test_a_step_of_training_reaches_every_parameter(config: Config, model: nn.Module):
    classes = config.model.head.num_classes
    samples = [DataSample().set_gt_label(classes - 1), DataSample().set_gt_label(0)]
    images = [torch.randint(256, (3, 97, 131), dtype=torch.uint8) for _ in samples]
    data = model.data_preprocessor(dict(inputs=images, data_samples=samples), training=True)
    total, _ = model.train().parse_losses(model(**data, mode='loss'))
    total.backward()
    assert torch.isfinite(total)
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    model.zero_grad()


def test_predictions_at_an_odd_size(config: Config, model: nn.Module):
    image = torch.randint(256, (3, 75, 203), dtype=torch.uint8)
    with torch.no_grad():
        (sample,) = model.eval().test_step(dict(inputs=[image], data_samples=[DataSample()]))
    assert sample.pred_score.shape == (config.model.head.num_classes,)
    assert sample.pred_score.sum().item() == pytest.approx(1, abs=1e-5)


def test_every_setting_is_known(config: Config):
    assert {finding.severity for finding in check_spelling(ConfigView(config))} == {'ok'}


@pytest.mark.parametrize('name', [PYRAMIDS[0], TNTS[0]])
def test_the_real_widths_run_and_are_counted(name: str):
    model = build_by_name(name)
    counted = complexity.measure_complexity(model, (224, 224))
    assert counted.total.parameters == sum(parameter.numel() for parameter in model.parameters())
    alone = ptnt_mm.get_config(name).model.backbone
    arch = alone.arch if alone.type == 'PyramidTNT' else f'{alone.type[-4:].lower()}_{alone.arch}'
    ours = complexity.measure_complexity(build_by_name(arch.removeprefix('.')), (224, 224))
    assert counted.total.multiply_adds == pytest.approx(ours.total.multiply_adds, rel=1e-3)


@pytest.fixture(scope='module')
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four images by ImageNet's lists."""
    folder = tmp_path_factory.mktemp('imagenet')
    random = np.random.default_rng(0)
    for split in ('train', 'val'):
        (folder / split).mkdir()
        for i in range(4):
            pixels = random.integers(256, size=(40, 50, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / split / f'{i}.png')
        (folder / 'meta').mkdir(exist_ok=True)
        lines = (f'{i}.png {i * 300}' for i in range(4))
        (folder / 'meta' / f'{split}.txt').write_text('\n'.join(lines))
    return folder


def _tiny(config: Config, images: Path, work_dir: Path, arch: dict) -> Config:
    """Two epochs of one iteration of four images, 48 pixels wide."""
    config = narrow(config, arch)
    for split in ('train', 'val', 'test'):
        loader = config[f'{split}_dataloader']
        loader.update(batch_size=4, num_workers=0, persistent_workers=False, pin_memory=False)
        loader.dataset.update(data_root=str(images), serialize_data=False)
        for step in loader.dataset.pipeline:
            step.update({key: 48 for key in ('scale', 'crop_size') if key in step})
    config.train_cfg.max_epochs = 2
    config.default_hooks.logger.interval = 1
    config.randomness = dict(seed=1)
    config.work_dir = str(work_dir)
    return config


def _train(config: Config) -> tuple[dict, dict]:
    """The weights and their averages after a run, checked as every run is."""
    check_before_training(ConfigView(config))
    config.experiment_name = Path(config.work_dir).name
    runner = build_runner(ConfigView(config))
    runner.train()
    (hook,) = (hook for hook in runner.hooks if type(hook).__name__ == 'EMAHook')
    assert runner.model.data_preprocessor.batch_augments is not None
    assert type(runner.train_dataloader.sampler).__name__ == 'RepeatAugSampler'
    return runner.model.state_dict(), hook.ema_model.state_dict()


@pytest.mark.parametrize('name', [PYRAMIDS[0], TNTS[0], CPVTS[0]])
def test_two_iterations_resume_bit_by_bit(
    name: str, images: Path, tmp_path: Path, micro_arch: dict
):
    config = _tiny(ptnt_mm.get_config(name), images, tmp_path / name, micro_arch)
    again = copy.deepcopy(config)
    whole = _train(config)
    again.work_dir = str(tmp_path / f'{name}_resumed')
    again.update(load_from=str(tmp_path / name / 'epoch_1.pth'), resume=True)
    start = torch.load(again.load_from, weights_only=False)['ema_state_dict']['module.head.fc.bias']
    assert not start.equal(whole[0]['head.fc.bias']), 'the second step changes something'
    for expected, found in zip(whole, _train(again), strict=True):
        assert expected.keys() == found.keys()
        assert [key for key in expected if not torch.equal(expected[key], found[key])] == []


def _authors(name: str, arch: dict) -> tuple[nn.Module, dict]:
    """A classifier as published, and the weights of its file."""
    torch.manual_seed(1)
    if 'ptnt' in name:
        model = PyramidTNTClassifier(arch)
        return model, model.state_dict()
    kind = 'TNT' if '_tnt_' in name else 'CPVT'
    model = PlainClassifier(dict(type=f'mmengine.{kind}', arch=PLAIN[kind]))
    weights = {
        key.removeprefix('backbone.').replace('head.fc.', 'head.'): weight
        for key, weight in model.state_dict().items()
    }
    for key in [key for key in weights if '_attn.q.weight' in key and kind == 'TNT']:
        queries, pairs = weights.pop(key), weights.pop(key.replace('.q.', '.kv.'))
        keys, values = pairs.chunk(2)
        weights[key.replace('.q.', '.qk.')] = torch.cat([queries, keys])
        weights[key.replace('.q.', '.v.')] = values
    return model, weights


@pytest.mark.parametrize('wrap', [dict, lambda w: dict(state_dict=w, epoch=1, arch='x')])
@pytest.mark.parametrize('name', [PYRAMIDS[1], TNTS[0], CPVTS[0]])
def test_an_authors_classifier_loads_whole(name: str, wrap, micro_arch: dict, tmp_path: Path):
    published, weights = _authors(name, micro_arch)
    torch.save(wrap({f'module.{key}': weight for key, weight in weights.items()}), tmp_path / 'w')
    model = build(narrow(ptnt_mm.get_config(name), micro_arch))
    load_strictly(model, str(tmp_path / 'w'))
    image = torch.randn(2, 3, 64, 96)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(image), published.eval()(image))


def test_timms_classifier_loads_whole(micro_arch: dict, tmp_path: Path):
    from timm.models import tnt

    arch = PLAIN['TNT']
    torch.manual_seed(2)
    published = tnt.TNT(
        64,
        embed_dim=arch['outer_dim'],
        inner_dim=arch['inner_dim'],
        depth=arch['depth'],
        num_heads_outer=arch['outer_heads'],
        num_heads_inner=arch['inner_heads'],
    )
    torch.save(published.state_dict(), tmp_path / 'w.pth')
    config = narrow(ptnt_mm.get_config(TNTS[0]), micro_arch)
    config.model.backbone.pretrain_img_size = 64
    image = torch.randn(2, 3, 64, 64)
    for model in (build(config), PlainClassifier(dict(config.model.backbone, _scope_='mmengine'))):
        load_strictly(model, str(tmp_path / 'w.pth'))
        with torch.no_grad():
            torch.testing.assert_close(model.eval()(image), published.eval()(image))


@pytest.mark.parametrize('name', [PYRAMIDS[0], TNTS[0]])
def test_an_authors_checkpoint_is_evaluated_by_its_average(name: str, images, tmp_path, micro_arch):
    config = _tiny(ptnt_mm.get_config(name), images, tmp_path / 'run', micro_arch)
    _, weights = _authors(name, micro_arch)
    one, none = dict(weights), dict(weights)
    # Of the four images, one has the label 300, and none has 7.
    one['head.bias'], none['head.bias'] = (
        100 * torch.nn.functional.one_hot(torch.tensor(label), 1000).float() for label in (300, 7)
    )
    torch.save(dict(state_dict=none, state_dict_ema=one, epoch=299), tmp_path / 'w.pth.tar')
    metrics = api.test(config, str(tmp_path / 'w.pth.tar'), tmp_path / 'test')
    assert metrics['accuracy/top1'] == 25


def test_an_authors_classifier_of_other_classes_is_refused(micro_arch: dict, tmp_path: Path):
    torch.save(PyramidTNTClassifier(micro_arch, num_classes=7).state_dict(), tmp_path / 'w.pth')
    model = build(narrow(ptnt_mm.get_config(PYRAMIDS[0]), micro_arch))
    with pytest.raises(CheckpointError, match='head.fc.*num_classes'):
        load_strictly(model, str(tmp_path / 'w.pth'))


@pytest.mark.parametrize(
    ('name', 'detector'),
    [(PYRAMIDS[1], 'retinanet_ptnt_s_1x'), (TNTS[0], 'retinanet_tnt_s_1x')],
)
def test_an_own_pretraining_starts_a_detector(name: str, detector: str, micro_arch: dict, tmp_path):
    model = build(narrow(ptnt_mm.get_config(name), micro_arch))
    torch.save(dict(state_dict=model.state_dict(), meta={}), tmp_path / 'epoch_300.pth')
    backbone = build(narrow(ptnt_mm.get_config(detector), micro_arch)).backbone
    load_pretrained(backbone, tmp_path / 'epoch_300.pth', logger='silent')
    own, given = backbone.state_dict(), model.backbone.state_dict()
    assert all(torch.equal(own[key], given[key]) for key in own.keys() & given.keys())
    assert len(own.keys() & given.keys()) > 20
