"""Configs of this package and of the hosts on the demo data, and ways to change their settings."""

import copy
import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from micro import SHALLOW_ARCH
from mmengine.config import Config, ConfigDict

from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.settings import dicts_within, type_name
from ptnt_mm.workbench.config.view import ConfigView

CLASSES = ('ball', 'coin', 'crate', 'cup')
SPLITS = ('train', 'val', 'test')
WIDTHS = ('in_channels', 'out_channels', 'feat_channels', 'fc_out_channels')

Change = Callable[[Config], object]


def config_on_demo(name: str, folder: Path, crops: Path) -> Config:
    """One of our configs ('retinanet') or a host's, with its data replaced by the demo set.

    Args:
        name: Of a demo config, or 'mmdet/' and the path of a config in its wheel.
        folder: The demo set.
        crops: The demo set's objects, for classifiers.
    """
    config = copy.deepcopy(_read(name))
    # Warm-ups are shorter: there are 16 images.
    schedules = config.get('param_scheduler') or ()
    for schedule in [schedules] if isinstance(schedules, dict) else schedules:
        warms_up = type_name(schedule) in ('ConstantLR', 'LinearLR')
        if warms_up and not schedule.get('by_epoch', True):
            schedule['end'] = min(schedule['end'], 20)
    change = {'mmdet': _use_objects, 'mmseg': _use_maps, 'mmpretrain': _use_labels}
    for split in SPLITS:
        for data_set in ConfigView(config).split(split).data_sets:
            change[config.default_scope](data_set.settings, split, folder, crops)
        for evaluator in ConfigView(config).split(split).evaluators:
            if evaluator.get('ann_file'):
                evaluator['ann_file'] = str(folder / 'annotations' / 'instances_val.json')
    return config


def put(settings: dict) -> Change:
    """Give --cfg-options."""

    def change(config: Config) -> None:
        for key, value in settings.items():
            parent, _, last = key.rpartition('.')
            inner = _at(config, parent) if parent else config
            if isinstance(value, dict) and not value.get('_delete_'):
                value = {**(inner.get(last) or {}), **value}
            elif isinstance(value, dict):
                value = {k: v for k, v in value.items() if k != '_delete_'}
            inner[last] = ConfigDict(value) if isinstance(value, dict) else value

    return change


def both(*changes: Change) -> Change:
    return lambda config: [change(config) for change in changes]


def set_step(split: str, kind: str, **options: object) -> Change:
    """Change the transforms of a kind; None removes a setting."""

    def change(config: Config) -> None:
        for pipeline, i in _steps(config, split, kind):
            pipeline[i].update(options)

    return change


def drop_meta(split: str, *keys: str) -> Change:
    """Remove meta keys from the last step of a pipeline."""

    def change(config: Config) -> None:
        for pipeline, i in _steps(config, split, 'PackDetInputs'):
            pipeline[i]['meta_keys'] = tuple(k for k in pipeline[i].meta_keys if k not in keys)

    return change


def removed(split: str, kind: str) -> Change:
    return lambda config: [p.pop(i) for p, i in list(_steps(config, split, kind))]


def joined(split: str) -> Change:
    """Concatenate a data set with itself."""

    def change(config: Config) -> None:
        loader = config[f'{split}_dataloader']
        twice = [loader.dataset, copy.deepcopy(loader.dataset)]
        loader.dataset = ConfigDict(type='ConcatDataset', datasets=twice)

    return change


def _at(config: Config, path: str) -> ConfigDict:
    inner = config
    for key in path.split('.'):
        inner = inner[key]
    return inner


def _steps(config: Config, split: str, kind: str) -> Iterator[tuple[list, int]]:
    """The lists that contain a kind of transform, and its index in each."""
    if split == 'tta':
        lists = [
            steps
            for _, settings in dicts_within(config.tta_pipeline, 'tta')
            if type_name(settings) == 'TestTimeAug'
            for steps in settings.transforms
        ]
    else:
        lists = [
            data_set.settings['pipeline'] for data_set in ConfigView(config).split(split).data_sets
        ]
    found = [
        (steps, i) for steps in lists for i, step in enumerate(steps) if type_name(step) == kind
    ]
    assert found, f'no {kind} in {split}'
    yield from reversed(found)


@functools.cache
def _read(name: str) -> Config:
    package, _, path = name.partition('/')
    if not path:
        ours = dict(classifier='classifier_ptnt_ti', semantic_fpn='semantic_fpn_ptnt_ti')
        config = read_config(f'demo_{ours.get(name, f"{name}_ptnt_ti")}')
        config.model.backbone.arch = ConfigDict(SHALLOW_ARCH)
        return config
    root = Path(import_module(package).__file__).parent / '.mim' / 'configs'
    config = read_config(str(root / path))
    for _, settings in dicts_within(config.model, 'model'):
        settings.pop('init_cfg', None)
        settings.pop('pretrained', None)
        # Statistics are learned from random initialisation. By default, mmdet's ResNet keeps them.
        if 'norm_eval' in settings or (package == 'mmdet' and settings.get('type') == 'ResNet'):
            settings['norm_eval'] = False
        # One process has nothing to synchronise.
        if settings.get('type') == 'SyncBN':
            settings['type'] = 'BN'
        if isinstance(settings.get('num_classes'), int) and 'rpn_head' not in _:
            settings['num_classes'] = 5 if package == 'mmseg' else 4
        if settings.get('out_channels') == 1 and package == 'mmseg':
            settings['out_channels'] = 5
        if settings.get('type') == 'ResNet' and package == 'mmdet' and settings.depth == 50:
            _narrow(config.model, settings)
    # mmpretrain's preprocessor turns labels into vectors for Mixup.
    if 'num_classes' in (config.get('data_preprocessor') or {}):
        config.data_preprocessor.num_classes = 4
    # Batches are smaller here, and classes fewer than five.
    config.auto_scale_lr = None
    for _, settings in dicts_within(config.get('val_evaluator'), ''):
        if 'topk' in settings:
            settings['topk'] = (1, 2)
    config.test_evaluator = copy.deepcopy(config.val_evaluator)
    for split in SPLITS:
        if (loader := config.get(f'{split}_dataloader')) is not None:
            loader.batch_size = min(loader.batch_size, 4)
            _shrink(loader.dataset)
    _shrink(config.model)
    return config


def _shrink(settings: ConfigDict) -> None:
    """Divide the sides of large images and crops by four: 1333x800 becomes 333x200."""
    for _, inner in dicts_within(settings, ''):
        for key in inner.keys() & {'scale', 'scales', 'crop_size', 'size', 'stride'}:
            sizes = inner[key] if key == 'scales' else [inner[key]]
            if all(isinstance(size, tuple) and max(size) > 500 for size in sizes):
                sizes = [tuple(side // 4 for side in size) for size in sizes]
                inner[key] = sizes if key == 'scales' else sizes[0]


def _narrow(model: ConfigDict, backbone: ConfigDict) -> None:
    """Replace ResNet-50 by a narrow ResNet-18, and quarter the widths of an FPN and its heads."""
    backbone.update(depth=18, base_channels=16)
    model.neck.in_channels = [channels // 16 for channels in model.neck.in_channels]
    if model.neck.type == 'FPN':
        for _, settings in dicts_within(model, 'model'):
            for name in WIDTHS:
                if isinstance(settings.get(name), int):
                    settings[name] //= 4


def _use_objects(settings: ConfigDict, split: str, folder: Path, crops: Path) -> None:
    part = 'train' if split == 'train' else 'val'
    settings.update(
        data_root=f'{folder}/',
        ann_file=f'annotations/instances_{part}.json',
        data_prefix=dict(img=f'{part}/'),
        metainfo=dict(classes=CLASSES),
    )


def _use_maps(settings: ConfigDict, split: str, folder: Path, crops: Path) -> None:
    part = 'train' if split == 'train' else 'val'
    settings.update(
        type='BaseSegDataset',
        data_root=f'{folder}/',
        data_prefix=dict(img_path=part, seg_map_path=f'semantic/{part}'),
        img_suffix='.jpg',
        seg_map_suffix='.png',
        reduce_zero_label=False,
        metainfo=dict(classes=('background', *CLASSES)),
    )
    settings.pop('ann_file', None)
    for step in settings.get('pipeline', ()):
        step.pop('reduce_zero_label', None)


def _use_labels(settings: ConfigDict, split: str, folder: Path, crops: Path) -> None:
    part = 'train' if split == 'train' else 'val'
    settings.update(
        type='CustomDataset',
        data_root=f'{crops}/',
        data_prefix=part,
        metainfo=dict(classes=CLASSES),
    )
    settings.pop('ann_file', None)
    settings.pop('split', None)
