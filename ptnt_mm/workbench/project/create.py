"""Create a project from a folder of labelled images, for ``ptnt new``."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptnt_mm.deploy.decoding import large_images_expected
from ptnt_mm.utils.atomic_files import folder_written_atomically, write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import require_integer
from ptnt_mm.utils.progress import waiting
from ptnt_mm.utils.text import counted, printable
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.zoo import PROJECT_CONFIG, copy_bases
from ptnt_mm.workbench.data.labels import (
    TASKS,
    LabelledImage,
    Labels,
    has_four_corners,
    ignored_regions,
)
from ptnt_mm.workbench.data.recognise import (
    Recognised,
    read_labels,
    recognise,
    summary,
    without_labels,
)
from ptnt_mm.workbench.data.tiles import TILED, Tiling, check_tiled
from ptnt_mm.workbench.data.tree import Tree
from ptnt_mm.workbench.project.backbone_table import rows
from ptnt_mm.workbench.project.backbones import choose_backbone
from ptnt_mm.workbench.project.convert import convert
from ptnt_mm.workbench.project.cut import Cut, cut_images
from ptnt_mm.workbench.project.detectors import find_detector, task_of
from ptnt_mm.workbench.project.folders import check_place, data_folder, settings_file
from ptnt_mm.workbench.project.previous import read_previous
from ptnt_mm.workbench.project.profile import (
    Profile,
    StepMemory,
    examine_pixels,
    free_memory,
    leave_out_narrow,
    measure_memory,
    profile_of,
)
from ptnt_mm.workbench.project.recipe import Recipe, choose_recipe
from ptnt_mm.workbench.project.split import split_off
from ptnt_mm.workbench.project.write import (
    CLASSES,
    HOST_OF,
    LABELS,
    TILES,
    bases,
    classes_text,
    config_text,
    has_long_classes,
)

PROBLEMS = 'problems.txt'

_LONGEST = 2000  # characters of a line
_NEARLY = 0.9  # of the pixels that a detector needs; sizes are rounded to 32 pixels

_LEAST = {'size': 32, 'tile': 32, 'epochs': 1}  # the recipe makes no side shorter than 32 pixels


@large_images_expected()
def create_project(
    data: Path | str,
    folder: Path | str,
    *,
    format: str | None = None,
    task: str | None = None,
    pairs: str | None = None,
    detector: str | None = None,
    backbone: str | None = None,
    weights: Path | str | None = None,
    size: int | None = None,
    tile: int | None = None,
    epochs: int | None = None,
    val_share: float | None = None,
    like: Path | str | None = None,
    on_line: Callable[[str], None] = lambda line: None,
) -> Path:
    """Create a project, a folder with a config and labels, from a folder of labelled images.

    Args:
        data: The folder of images and labels, or YOLO's data.yaml in it; only read.
        folder: The project; created completely or not at all.
        on_line: Called with each line about what was found and chosen.
        format: Format of the labels; recognised from the files by default. docs/formats.md lists
            all.
        task: detection, instance, semantic or classification; by default the one that uses most of
            the labels.
        pairs: Patterns of the paths of images and masks, with {} for what both share:
            'images/{}.jpg masks/{}_m.png'; by default, their names are compared.
        detector: The detector, segmenter or classifier; by default gfl for boxes, mask_rcnn for
            object masks, semantic_fpn for class masks. docs/data.md lists all.
        backbone: Such as ptnt_s, tnt_s, efficientnet_lite0, resnet18, swin_t, or a registered class
            with its arguments; by default one whose pretrained weights are available.
        weights: Weights of the backbone: a file, an address, hf:OWNER/NAME, a name from ptnt
            weights, 'published', or 'none' for random initialisation; by default the published
            ones, if they are available.
        size: Longer side of training images, at least 32; chosen by default.
        tile: Side of the tiles that larger training images are cut into, at least 32, or 0 to keep
            images whole; by default only where small objects need it.
        epochs: Number of passes through the images; chosen by default.
        val_share: Share of the images to validate on, 0.2 by default, if the data has no validation
            split.
        like: A previous project: its images keep their splits, and new ones are split by the same
            rule.

    Returns:
        The config.

    Raises:
        UserError: if the folder exists or is inside the data, if the format of the labels is not
            supported, if none of them can be used, or if an option is wrong or impossible.
    """
    settings = settings_file(Path(data))
    data, folder = data_folder(Path(data)), Path(folder)
    check_place(data, folder)
    options = {
        'format': format,
        'task': task,
        'pairs': pairs,
        'detector': detector,
        'backbone': backbone,
        'weights': weights,
        'size': size,
        'tile': tile,
        'epochs': epochs,
        'val_share': val_share,
        'like': like,
    }
    _check_numbers(options)
    if detector is not None and task is None:
        task = task_of(detector)
    previous = read_previous(Path(like)) if like is not None else None
    tree = Tree(data, pairs, settings)
    with waiting('Reading the labels'):
        recognised = recognise(tree, format, task)
        on_line(f'{recognised.format.title}: {recognised.why}')
        for line in recognised.others:
            on_line(f'  also found, but not read: {line}')
        labels = read_labels(tree, recognised)
    if previous is not None and not labels.mask_indices:  # the values of masks have an order
        labels.classes = previous.ordered(labels.classes)
    value_range = examine_pixels(labels)
    task = choose_task(recognised, labels, task)
    leave_out_narrow(labels, task, size)
    check_tiled(tile, task)
    head = find_detector(detector, task)
    with waiting('Building the backbone'):
        network = choose_backbone(backbone, weights and str(weights), HOST_OF[task])
    splits = split_off(labels, val_share, previous)
    profile = replace(
        profile_of(task, tuple(labels.classes), splits, head, network),
        asked_size=size,
        asked_tile=tile,
        asked_epochs=epochs,
        asked_detector=detector is not None,
        value_range=value_range,
    )
    try:
        with folder_written_atomically(folder) as building:
            roots, cut = dict.fromkeys(splits, tree.root), None
            if (side := choose_recipe(profile)['tile'].value) is not None:
                roots['train'] = building / TILES
                cut = _cut(splits['train'], side, tree.root, roots['train'])
                splits['train'], profile = cut.images, profile.of_tiles(cut.images)
            with waiting('Writing the labels'):
                classes = convert(labels, splits, task, roots, building / LABELS)
            profile = replace(profile, classes=classes)
            opening = _opening(settings or data, folder, options, profile, recognised)
            copy_fragments(building, profile)
            write_config(building, profile, tree.root, opening)
            # The batch size depends on the memory of a step, which is measured with this config.
            with waiting('Measuring the memory of a training step'):
                profile = replace(profile, memory=_memory(building), free=free_memory())
            write_config(building, profile, tree.root, opening)
            for line in (
                *_findings(profile, labels),
                *_choices(choose_recipe(profile), profile, cut),
            ):
                on_line(printable(line, _LONGEST))  # names of classes may have any characters
            if labels.problems:
                write_atomically(building / PROBLEMS, _problems(tree, labels))
                on_line(f'  all problems are listed in {folder / PROBLEMS}')
    except OSError as error:
        raise UserError(f'{folder} cannot be created: {error}') from error
    return folder / PROJECT_CONFIG


def copy_fragments(folder: Path, profile: Profile) -> None:
    """Copy the fragments that a config inherits, with the width of its neck and head."""
    width = choose_recipe(profile)['width'].value
    for file in copy_bases(bases(profile), folder):
        text = file.read_text(encoding='utf-8')
        write_atomically(file, re.sub(r'^width = \d+$', f'width = {width}', text, flags=re.M))


def write_config(folder: Path, profile: Profile, data: Path, opening: list[str]) -> None:
    """Choose a recipe, and write the config."""
    recipe = choose_recipe(profile)
    if has_long_classes(profile):
        write_atomically(folder / CLASSES, classes_text(profile))
    write_atomically(folder / PROJECT_CONFIG, config_text(profile, recipe, data, opening))


def _check_numbers(options: dict[str, Any]) -> None:
    for name, least in _LEAST.items():
        value = options[name]
        is_off = name == 'tile' and type(value) is int and value == 0
        if value is not None and not is_off:
            require_integer(name, value, least, ', or 0 for whole images' * (name == 'tile'))
    share = options['val_share']
    if share is not None and not (isinstance(share, float) and 0 < share < 1):
        raise UserError(f'`val_share={share!r}`: expected a number between 0 and 1, such as 0.2')


def choose_task(recognised: Recognised, labels: Labels, asked: str | None) -> str:
    """The requested task, or the most informative one for the labels; notes unused masks.

    Raises:
        UserError: if the task needs masks, and the labels have none.
    """
    tasks = recognised.format.tasks
    objects = [item for image in labels.images for item in image.objects]
    masks = [item.segmentation for item in objects if item.segmentation]
    if 'detection' in tasks and asked in ('instance', 'semantic') and not masks:
        raise UserError(without_labels(asked, 'the labels are only boxes'))
    task = asked or ('instance' if 'instance' in tasks and labels.has_masks() else tasks[0])
    if task == 'detection' and masks and asked is None:
        are_boxes = all(map(has_four_corners, masks))
        what = 'are rectangles or rotated boxes' if are_boxes else 'have a mask'
        use = '; `task=instance` uses masks' if 'instance' in tasks else ''
        use += '; for boxes with an angle, see docs/own_config.md' if are_boxes else ''
        labels.notes.append(
            f'{len(masks):,} of {counted(len(objects), "object")} {what}: the upright box around '
            f'each is used{use}'
        )
    return task


def _cut(images: Sequence[LabelledImage], side: int, root: Path, folder: Path) -> Cut:
    """Cut images into tiles, if one of them is larger."""
    width, height = max((image.size for image in images), key=max)
    if side >= max(width, height):
        raise UserError(
            f'`tile={side}`: the largest training image has {width} x {height} pixels, so '
            'none would be cut: choose a smaller tile, or leave it out'
        )
    return cut_images(images, Tiling(side), root, folder)


def _memory(folder: Path) -> StepMemory | None:
    """Memory of a training step with the config in a folder; None if the step fails."""
    try:
        return measure_memory(read_config(folder / PROJECT_CONFIG))
    except Exception:  # the check at the end reports the error
        return None


def _opening(
    data: Path, folder: Path, options: dict[str, Any], profile: Profile, recognised: Recognised
) -> list[str]:
    words = ['ptnt', 'new', str(data), str(folder)]
    for name, value in options.items():
        if value is not None:
            words += [f'--{name.replace("_", "-")}', str(value)]
    return [
        f'Written by `{shlex.join(words)}`. Comments give the reasons for the settings.',
        f'{recognised.format.title}: {", ".join(_counted(profile))}.',
    ]


def _counted(profile: Profile) -> tuple[str, str]:
    """Descriptions of the images and their objects."""
    uses = dict(train='to train on', val='to validate', test='to test')
    profile = profile.whole or profile
    images = ', '.join(f'{count:,} {uses[split]}' for split, count in profile.counts.items())
    objects = f'{counted(profile.objects, "training object")} of ' if profile.objects else ''
    return f'images: {images}', f'{objects}{counted(len(profile.classes), "class")}'


def _findings(profile: Profile, labels: Labels) -> list[str]:
    lines = [f'  {"; ".join(_counted(profile))}']
    lines += [f'  task: {profile.task}, from {TASKS[profile.task]}']
    lines += [f'  {_start(profile)}']
    if regions := ignored_regions(labels):
        lines += [f'  regions that are ignored when detections are counted: {regions}']
    lines += [f'  {note}' for note in labels.notes]
    return lines + [f'  {line}' for line in summary(labels)]


def _choices(recipe: Recipe, profile: Profile, cut: Cut | None) -> Iterator[str]:
    """The main settings of the config, with the numbers that decided them."""
    model, tile, size, crop = (recipe[name] for name in ('model', 'tile', 'size', 'crop'))
    pixels = ' x '.join(map(str, size.value)) if isinstance(size.value, tuple) else size.value
    crops = f', crops of {crop.value[0]} x {crop.value[1]}' if crop.value else ''
    epochs, batch, lr, share = (recipe[name] for name in ('epochs', 'batch_size', 'lr', 'lr_mult'))
    of_backbone = f', {lr.value * share.value:.2g} in the backbone' if share.value else ''
    yield f'  model: {model.value} with {profile.backbone.name}'
    if cut is not None:
        yield f'  tiles: {tile.value} x {tile.value} pixels ({tile.because})'
        yield f'    {cut}'
    yield f'  size: {pixels} pixels{crops} ({size.because})'
    yield from _too_small(recipe, profile)
    balance = recipe['balance']
    repeated = f'; images of rare classes are repeated ({balance.because})' if balance.value else ''
    yield (
        f'  training: {counted(epochs.value, "epoch")} ({epochs.because}), '
        f'{counted(batch.value, profile.trained_on)} per step, learning rate {lr.value}'
        f'{of_backbone}{repeated}'
    )


def _too_small(recipe: Recipe, profile: Profile) -> Iterator[str]:
    """A line about objects that the detector will hardly find."""
    if profile.small is None or profile.task not in TILED:
        return
    pixels, needed = profile.small * max(recipe['size'].value), profile.detector.smallest
    if pixels < _NEARLY * needed:
        chosen = choose_recipe(replace(profile.whole or profile, asked_tile=None))['tile'].value
        if chosen is not None and recipe['tile'].value != chosen:
            remedy = f'tiles of {chosen} pixels'
        elif profile.asked_size and chosen is None:
            remedy = 'a larger size or smaller tiles' if profile.asked_tile else 'a larger size'
        else:
            remedy = 'images of a higher resolution'
        yield (
            f'  warning: {profile.smaller} below {pixels:.0f} pixels in training, and '
            f'{profile.detector.name} needs about {needed}: {remedy} would help'
        )


def _start(profile: Profile) -> str:
    """A line about the initialisation of the backbone."""
    network = profile.backbone
    if network.weights and network.weights == rows().get(network.name, {}).get('weights'):
        return f'starts from pretrained weights: {network.name}'
    if network.weights:
        return f'starts from pretrained weights: {Path(network.weights).name}, of {network.name}'
    random = f'starts from random initialisation: {network.name}'
    if reason := network.unavailable:
        random = f'warning: {random}, because {reason}'
    return (
        f'{random}. With the same head, ImageNet weights gained 25 and 31 AP on two sets of '
        'photographs, and 3 on cells (docs/research/results.md)'
    )


def _problems(tree: Tree, labels: Labels) -> str:
    lines = (
        printable(
            f'{_where(tree, problem.file)}: {problem.title}: {problem.detail}'.rstrip(': '),
            _LONGEST,
        )
        for problem in labels.problems
    )
    return '\n'.join(lines) + '\n'


def _where(tree: Tree, file: Path) -> str:
    return str(tree.relative(file)) if file.is_relative_to(tree.root) else str(file)
