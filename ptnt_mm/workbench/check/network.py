"""The network's settings: classes of its heads, strides of its maps, mean and std of its input."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf

import torch
from torch import nn

from ptnt_mm.utils.findings import Finding, Severity, error, note, ok, warning
from ptnt_mm.utils.frames import one_line
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.weights.published import GREY
from ptnt_mm.workbench.check.trial.setup import undisturbed
from ptnt_mm.workbench.config.hosts import HOSTS
from ptnt_mm.workbench.config.settings import dicts_within, short_name, type_name
from ptnt_mm.workbench.config.view import ConfigView

# A region proposal head has one class, a semantic head those of its maps, a backbone those of its
# pretraining; mmseg's STDCHead predicts borders between classes.
_OTHER_CLASSES = ('backbone', 'rpn_head', 'semantic_head', 'STDCHead')


def check_classes_of_heads(view: ConfigView, classes: tuple[str, ...]) -> Iterator[Finding]:
    """Compare every num_classes of the model with the number of class names.

    Without class names, nothing is compared.
    """
    counts = list(_class_counts(view))
    if not counts:
        yield note('model', 'no head has num_classes in the config')
        return
    if not classes:
        yield note('model', 'the class names are not known: num_classes was not compared')
        return
    wrong = [(path, count) for path, count in counts if count != len(classes)]
    for path, count in wrong:
        what = f'is {count}, the data has {counted(len(classes), "class")}: {first_few(classes)}'
        yield error(path, what, f'write {len(classes)}')
    if not wrong:
        yield ok('model', f'{len(counts)} x num_classes={len(classes)}')


def check_built_heads(
    view: ConfigView, model: nn.Module, classes: tuple[str, ...]
) -> Iterator[Finding]:
    """Compare the default numbers of classes in a built model with the number of names."""
    stated = {path.rpartition('.')[0] for path, _ in _class_counts(view)}
    for name, module in model.named_modules():
        path = re.sub(r'\.(\d+)', r'[\1]', f'model.{name}')
        # In heads of things and stuff, num_classes is the sum.
        key = 'num_things_classes' if hasattr(module, 'num_things_classes') else 'num_classes'
        count = getattr(module, key, None)
        # A segmenter itself repeats the number of its head.
        is_other = not name or path in stated or _is_other(path, type(module).__name__)
        if isinstance(count, int) and not is_other and classes and count != len(classes):
            what = f'is {count} by default, the data has {counted(len(classes), "class")}'
            yield error(f'{path}.{key}', what, f'write {key}={len(classes)}')


def _class_counts(view: ConfigView) -> Iterator[tuple[str, int]]:
    """Each number of classes in a model's settings, with its path."""
    # Configs of mmpretrain have the preprocessor, which needs the number for Mixup, at their top.
    for part in ('model', 'data_preprocessor'):
        for path, settings in dicts_within(view.config.get(part), part):
            for key in ('num_classes', 'num_things_classes'):
                if isinstance(settings.get(key), int) and not _is_other(path, type_name(settings)):
                    yield f'{path}.{key}', settings[key]


def _is_other(path: str, kind: str) -> bool:
    """Whether a path leads into a part of the model with separate classes."""
    steps = (step.partition('[')[0] for step in path.split('.'))
    return any(name in _OTHER_CLASSES for name in (kind, *steps))


_SIDE = 256  # side of the square test image, in pixels

_SHIFTED = 'the coarsest map covers more than the image, and resizing it shifts the predictions'
_RESIZE = 'or resize the maps: a TransposedConvNeck halves their strides'


def check_strides(view: ConfigView, model: nn.Module) -> Iterator[Finding]:
    """Run the backbone and the neck on a small image; compare the maps with what heads expect.

    Generators of anchors and points and extractors of regions have separate strides, and a head
    with wrong ones trains without an error, for the wrong places in the image. The model is in
    evaluation mode afterwards.
    """
    strides = list(strides_of_parts(model))
    if not strides:
        return
    try:
        maps = _run_on_zeros(view, model, model.extract_feat)
    except Exception as err:  # a model may need more than an image
        yield _different_channels(view, model) or note(
            'model', f'strides were not compared: {one_line(err)}'
        )
        return
    measured = [_SIDE / max(level.shape[-2:]) for level in maps]
    for where, setting, expected in strides:
        # The sides of maps are rounded up, perhaps several times. So a stride is wrong if it
        # differs by a factor of 1.5, and the smallest maps are ignored.
        levels = [pair for pair in zip(expected, measured, strict=False) if pair[1] <= _SIDE / 4]
        if all(2 / 3 < stride / real < 3 / 2 for stride, real in levels):
            yield ok(where, f'takes maps of strides {_to_text(expected)}')
        else:
            what = f'expects strides {_to_text(expected)}, its maps have {_to_text(measured)}'
            written = _to_text(measured[: len(expected)])
            advice = f'predictions are for the wrong places: write {setting}=[{written}], {_RESIZE}'
            if where.endswith('prior_generator'):
                advice += '. In many configs it is called anchor_generator'
            yield error(where, what, advice)


def _different_channels(view: ConfigView, model: nn.Module) -> Finding | None:
    """An error if the neck was built for other channels than the backbone's maps have."""
    neck = view.model.get('neck')
    path = 'model.neck[0].in_channels' if isinstance(neck, list) else 'model.neck.in_channels'
    neck = neck[0] if isinstance(neck, list) and neck else neck
    stated = neck.get('in_channels') if isinstance(neck, Mapping) else None
    with suppress(Exception):
        found = [level.shape[1] for level in _run_on_zeros(view, model, model.backbone)]
        if isinstance(stated, Sequence) and list(stated) != found:
            what = f'is {list(stated)}, the maps of the backbone have {found} channels'
            return error(path, what, f'write in_channels={found}')
    return None


def _run_on_zeros(view: ConfigView, model: nn.Module, part: Callable) -> Sequence[torch.Tensor]:
    """The maps that a part of the model makes of a small image; the model is then evaluating."""
    with undisturbed(view.scope), torch.no_grad():
        model.eval()
        return part(torch.zeros(1, 3, _SIDE, _SIDE, device=next(model.parameters()).device))


def check_padding(view: ConfigView, model: nn.Module) -> Iterator[Finding]:
    """Compare what a segmenter pads test images to with the last stride of its backbone.

    If it is no multiple, the coarsest map covers more than the image, and resizing it shifts the
    predictions, the more the further from the upper left corner.
    """
    if view.scope != 'mmseg':
        return
    try:
        maps = _run_on_zeros(view, model, model.backbone)
        last = _SIDE // min(min(level.shape[-2:]) for level in maps)
    except Exception:  # a network may need more than an image, and return anything
        return
    where, test = 'model.data_preprocessor.test_cfg', view.preprocessor.get('test_cfg') or {}
    # mmseg uses the divisor only without a size.
    padded = 1 if test.get('size') else test.get('size_divisor') or 1
    if padded % last:
        multiples = f'to multiples of {padded} pixels' if padded > 1 else 'to no multiple'
        what = f"test images are padded {multiples}, and the backbone's last map has stride {last}"
        advice = f'{_SHIFTED}: write test_cfg=dict(size_divisor={last})'
        yield note(where, what, advice + (', size=None' if test.get('size') else ''))
    windows = view.model.get('test_cfg') or {}
    if windows.get('mode') == 'slide' and any(side % last for side in windows.crop_size):
        what = f"is {tuple(windows.crop_size)}, and the backbone's last map has stride {last}"
        advice = f'{_SHIFTED}: write multiples of {last}'
        yield note('model.test_cfg.crop_size', what, advice)


def strides_of_parts(model: nn.Module) -> Iterator[tuple[str, str, list[float]]]:
    """The parts of a model with strides: where each is, the name of its setting, and the strides.

    They are extractors of regions, and generators of anchors and points.
    """
    for name, module in model.named_modules():
        # HTC's semantic extractor takes the map of its semantic head.
        if hasattr(module, 'featmap_strides') and 'semantic' not in name:
            yield f'model.{name}', 'featmap_strides', list(map(float, module.featmap_strides))
        # Semantic FPN enlarges each map by its stride over the first one.
        if hasattr(module, 'feature_strides'):
            where, found = f'model.{name}.feature_strides', map(float, module.feature_strides)
            yield where, 'feature_strides', list(found)
        for key in ('prior_generator', 'square_anchor_generator'):
            if hasattr(generator := getattr(module, key, None), 'strides'):
                pairs = (
                    pair if isinstance(pair, Sequence) else [pair] for pair in generator.strides
                )
                yield f'model.{name}.{key}', 'strides', [float(max(pair)) for pair in pairs]


def _to_text(strides: Sequence[float]) -> str:
    return ', '.join(f'{stride:.3g}' for stride in strides)


def check_normalisation(view: ConfigView) -> Iterator[Finding]:
    """Compare the mean and standard deviation in the config with those of the weights."""
    where = 'model.data_preprocessor'
    scale = view.preprocessor
    mean, std = scale.get('mean'), scale.get('std')
    # A whole model, as load_from has it, may have been trained with a different mean and std.
    is_ours = view.is_of_family
    pretrained = is_ours and not view.load_from and view.starting_weights is not None
    if mean is None or std is None:
        what = f'has mean={mean} and std={std}: the model gets values from 0 to 255'
        # From random initialisation, some detectors are trained like this, such as YOLOX.
        resumes = bool(view.config.get('resume'))
        starts = is_ours or (view.starting_weights is not None and not resumes)
        severity = Severity.WARNING if starts else Severity.NOTE
        yield Finding(severity, where, what, f'write mean={list(GREY)}, std={list(GREY)}')
    elif not (isinstance(mean, Sequence) and isinstance(std, Sequence)):
        what = f'has mean={mean} and std={std}: expected a number for each channel'
        yield error(where, what, f'write mean={list(GREY)}, std={list(GREY)}')
    elif not all(0 < number < inf for number in std):
        what = f'std={list(std)}: images are divided by it'
        yield error(where, what, f'write numbers above 0, such as std={list(GREY)}')
    elif max(*mean, *std) <= 1:
        what = f'mean={list(mean)} and std={list(std)} are for images from 0 to 1'
        yield error(where, what, 'images have values from 0 to 255 here: multiply both by 255')
    elif pretrained:
        found = list(_unlike_the_authors(view, where, scale))
        what = f'mean and std are {GREY[0]} and images RGB, as for the weights'
        yield from found or [ok(where, what)]
    else:
        yield ok(where, f'mean={list(mean)}, std={list(std)}')


def _unlike_the_authors(view: ConfigView, where: str, scale: Mapping) -> Iterator[Finding]:
    for key in ('mean', 'std'):
        if tuple(scale[key]) != GREY:
            what = f'is {list(scale[key])}; the published weights were trained with {list(GREY)}'
            advice = f'write {key}={list(GREY)}, unless your weights were trained otherwise'
            yield warning(f'{where}.{key}', what, advice)
    key = HOSTS.get(view.scope, HOSTS['mmdet']).to_rgb
    # A data set without image files, such as CIFAR, has RGB.
    steps = [short_name(step) for dataset in view.train.data_sets for step in dataset.pipeline]
    reads_files = not steps or any(step.startswith('LoadImage') for step in steps)
    if reads_files and not scale.get(key):
        what = 'is not set, and images are read as BGR; the published weights expect RGB'
        yield warning(f'{where}.{key}', what, f'write {key}=True')
