"""The normalisation of images: mean and std as in the training of the weights, RGB or BGR."""

from collections.abc import Iterator, Mapping
from math import inf

from ptnt_mm.config.hosts import HOSTS
from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.models.backbone import GREY
from ptnt_mm.utils.findings import Finding, Severity, error, ok, warning


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
        # Some detectors are trained like this from random initialisation, such as YOLOX.
        starts = is_ours or view.starting_weights is not None
        severity = Severity.WARNING if starts else Severity.NOTE
        yield Finding(severity, where, what, f'write mean={list(GREY)}, std={list(GREY)}')
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
    steps = [type_name(step) for dataset in view.train.data_sets for step in dataset.pipeline]
    reads_files = not steps or any(step.startswith('LoadImage') for step in steps)
    if reads_files and not scale.get(key):
        what = 'is not set, and images are read as BGR; the published weights expect RGB'
        yield warning(f'{where}.{key}', what, f'write {key}=True')
