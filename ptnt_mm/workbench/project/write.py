"""Write the config of a project: short, with the deciding number next to each setting."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptnt_mm.workbench.data.tiles import OVERLAP, TILED
from ptnt_mm.workbench.engine.work_dir import PROJECT_WORK_DIR
from ptnt_mm.workbench.project.code import Code, comment, comment_line, literal
from ptnt_mm.workbench.project.model_settings import model_lines
from ptnt_mm.workbench.project.profile import Profile
from ptnt_mm.workbench.project.recipe import Recipe

LABELS = 'labels'
"""The folder of the labels in a project."""

TILES = f'{LABELS}/tiles'
"""The folder of the tiles that a project trains on, if images were cut."""

CLASSES = f'{LABELS}/classes.py'
"""The class names that are too long for the config, which inherits this file."""

HOST_OF = dict(detection='mmdet', instance='mmdet', semantic='mmseg', classification='mmpretrain')
"""The host library for each task."""

_MOST_CHARACTERS = 300  # of class names in the config
_FIGURES = ('tile', 'size', 'crop', 'batch_size', 'balance', 'epochs', 'lr', 'norm')
_LOADED = dict(detection=2, instance=2, semantic=2, classification=1)
"""The loading steps of a training pipeline; augmentation follows."""


def bases(profile: Profile) -> list[str]:
    """The fragments that a config inherits: model, data, schedule, the rest."""
    return [
        profile.detector.fragment,
        f'_base_/project/data_{profile.task}.py',
        '_base_/project/schedule.py',
        f'_base_/project/runtime_{HOST_OF[profile.task]}.py',
    ]


def has_long_classes(profile: Profile) -> bool:
    """Whether the class names are too long for the config."""
    return len(literal(profile.classes)) > _MOST_CHARACTERS


def classes_text(profile: Profile) -> str:
    """The content of ``CLASSES``."""
    names = ''.join(f'    {literal(name)},\n' for name in profile.classes)
    return f'classes = (\n{names})\n'


def config_text(profile: Profile, recipe: Recipe, data: Path, opening: list[str]) -> str:
    """The config of a project, at most 40 lines.

    Args:
        profile: The statistics of the data set.
        recipe: The choices.
        data: The folder of the images, absolute.
        opening: The first lines, as comments.
    """
    lines = list(map(comment_line, opening))
    lines += ['_base_ = [']
    is_long = has_long_classes(profile)
    model, *others = map(repr, [*bases(profile), *([CLASSES] if is_long else [])])
    lines += [f'    {model},{comment(_of_model(recipe))}', f'    {", ".join(others)},']
    lines += [']']
    here = '{{ fileDirname }}'
    lines += [f'images = {literal(str(data))}']
    lines += [f"labels, work_dir = '{here}/{LABELS}', '{here}/{PROJECT_WORK_DIR}'"]
    lines += [f'classes = {"_base_.classes" if is_long else literal(profile.classes)}']
    lines += _figures(recipe)
    lines += model_lines(profile, recipe)
    lines += _pipelines(profile, recipe)
    lines += _data(profile, recipe)
    lines += _schedule(profile, recipe)
    return '\n'.join(lines) + '\n'


def _of_model(recipe: Recipe) -> str:
    width, model = recipe['width'], recipe['model']
    channels = f'{width.value} channels for {width.because}'
    return f'{model.because}; {channels}' if model.because else channels


def _figures(recipe: Recipe) -> Iterator[str]:
    """Settings that later lines use by name."""
    for setting in _FIGURES:
        choice = recipe[setting]
        if choice.value is not None:
            yield f'{setting} = {literal(choice.value)}{comment(choice.because)}'


def _pipelines(profile: Profile, recipe: Recipe) -> Iterator[str]:
    loaded, choice = _LOADED[profile.task], recipe['augmentation']
    if profile.value_range is not None:
        text = literal(profile.value_range)
        yield f"load_image = dict(type='LoadImageInRange', value_range={text})  # become 0 to 255"
        steps = [f'_base_.{split}_dataloader.dataset.pipeline[0]' for split in ('train', 'val')]
        yield f'{" = ".join(steps)} = load_image'
    place = f'_base_.train_dataloader.dataset.pipeline[{loaded}:{loaded}]'
    yield f'{place} = [{comment(choice.because)}'
    for step in _steps(profile, choice.value):
        yield f'    {step},'
    yield ']'
    steps = '_base_.val_dataloader.dataset.pipeline'
    if profile.task == 'classification':
        yield f'{steps}[1].scale = round(size / 0.9)'
        yield f'{steps}[2].crop_size = size'
    else:
        yield f'{steps}[1].scale = size'
    yield '_base_.test_dataloader = _base_.val_dataloader'


def _steps(profile: Profile, augmentation: str) -> Iterator[str]:
    if profile.task == 'classification':
        yield "dict(type='RandomResizedCrop', scale=size, crop_ratio_range=(0.35, 1.0))"
        yield "dict(type='RandomFlip', prob=0.5, direction='horizontal')"
        if augmentation == 'strong':
            yield "dict(type='ColorJitter', brightness=0.3, contrast=0.3, backend='cv2')"
        return
    if augmentation == 'light':
        yield "dict(type='Resize', scale=size, keep_ratio=True)"
    else:
        yield "dict(type='RandomResize', scale=size, ratio_range=(0.75, 1.33), keep_ratio=True)"
    if profile.task == 'semantic':
        yield "dict(type='RandomCrop', crop_size=crop, cat_max_ratio=0.75)"
    colours = ", dict(type='PhotoMetricDistortion')" if augmentation == 'strong' else ''
    yield f"dict(type='RandomFlip', prob=0.5){colours}"


def _data(profile: Profile, recipe: Recipe) -> Iterator[str]:
    """The loaders and evaluators of the splits."""
    is_coco = profile.task in TILED
    is_tiled = recipe['tile'].value is not None
    suffix = 'json' if is_coco else 'txt'
    # What is in the project has absolute paths, so that data_root is the folder of the images.
    masks = ", seg_map_path=f'{labels}/masks'"
    prefixes = dict(semantic=f"dict(img_path=''{masks})", classification="''")
    prefix = prefixes.get(profile.task, "dict(img='')")
    yield f'data = dict(data_root=images, metainfo=dict(classes=classes), data_prefix={prefix})'
    batch = 'batch_size=batch_size, '
    for split in ('train', 'val', 'test'):
        if split in profile.counts:
            also = ", data_prefix=dict(img=f'{labels}/tiles')" if is_tiled and batch else ''
            file = f"f'{{labels}}/{split}.{suffix}'"
            data_set = f'dict(data, ann_file={file}{also})'
            if split == 'train' and recipe['balance'].value is not None:
                yield f'once = dict(_base_.train_dataloader.dataset, **{data_set})'
                repeated = "type='ClassBalancedDataset', oversample_thr=balance, dataset=once"
                yield f'balanced = dict(_delete_=True, {repeated})'
                data_set = 'balanced'
            yield f'{split}_dataloader = dict({batch}dataset={data_set})'
            if is_coco and split != 'train':
                yield f'{split}_evaluator = dict(ann_file={file})'
        batch = ''
    if 'test' not in profile.counts:
        # The fragment's evaluator of masks and classes is the same for both.
        also = (', test_evaluator', ', val_evaluator') if is_coco else ('', '')
        yield f'test_dataloader{also[0]} = val_dataloader{also[1]}  # there are no test images'
    if is_tiled:
        for split, loop in (('val', 'TiledValLoop'), ('test', 'TiledTestLoop')):
            yield f'{split}_cfg = dict(type={loop!r}, tile=tile, overlap={OVERLAP})'


def _schedule(profile: Profile, recipe: Recipe) -> Iterator[str]:
    evaluations = max(round(recipe['epochs'].value / 10), 1)
    yield f'train_cfg = dict(max_epochs=epochs, val_interval={evaluations})'
    warm_up = recipe['warm-up']
    if warm_up.value:
        yield f'_base_.param_scheduler[0].end = {warm_up.value}{comment(warm_up.because)}'
    yield '_base_.param_scheduler[1].update(end=epochs, T_max=epochs)'
    if warm_up.value == 0:
        yield f'_base_.param_scheduler.pop(0){comment(warm_up.because)}'
    steps, share = recipe['accumulation'], recipe['lr_mult']
    wrapper: dict[str, Any] = dict(optimizer=dict(lr=Code('lr')))
    if steps.value > 1:
        wrapper['accumulative_counts'] = steps.value
    # Of the keys that a weight's name contains, only the longest counts.
    of_backbone = {} if share.value is None else dict(lr_mult=share.value)
    keys = {name: dict(of_backbone, decay_mult=0.0) for name in profile.backbone.no_decay}
    if of_backbone:
        keys['backbone'] = of_backbone
    if keys:
        wrapper['paramwise_cfg'] = dict(custom_keys=keys)
    because = '; '.join(filter(None, (steps.because, share.because)))
    yield f'optim_wrapper = {literal(wrapper)}{comment(because)}'
    batch = recipe['effective batch'].value
    yield f'auto_scale_lr = dict(base_batch_size={batch})  # images per step, for this lr'
