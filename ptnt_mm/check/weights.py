"""Where training starts from: pretrained weights that can be read and fit."""

from collections.abc import Iterator

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ptnt_mm.check.trial.setup import undisturbed
from ptnt_mm.config.class_names import compare_class_names
from ptnt_mm.config.initial_weights import check_start
from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.models.backbone import Backbone
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, error, note, ok, warning
from ptnt_mm.utils.text import first_few
from ptnt_mm.weights.fit import BackboneOfWhole, fit
from ptnt_mm.weights.pretrained import pretrained_parts, try_pretrained
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.files import is_address
from ptnt_mm.weights.reader.read import read_checkpoint

_PRETRAINING = ('ImageNet', 'UnlabelledImages')
"""Data sets of runs that make pretrained weights."""


def describe_start(view: ConfigView, weights: str | None) -> Iterator[Finding]:
    """Report whether training starts from a file, an address or random initialisation."""
    if weights is not None:
        yield ok('Weights', f'training starts from {weights}')
    elif any(type_name(d.settings) in _PRETRAINING for d in view.train.data_sets):
        yield ok('Weights', 'training starts from random initialisation, as in pretraining')
    else:
        yield note(
            'NO PRETRAINED WEIGHTS',
            'training starts from random initialisation. `pretrained=PATH` loads ImageNet weights '
            'into the backbone',
        )


def check_weights_are_there(view: ConfigView) -> Iterator[Finding]:
    """Check that the file that training starts from exists, without opening it."""
    try:
        yield from describe_start(view, check_start(view))
    except UserError as err:
        yield error('model.backbone', str(err))


def check_weights_fit(
    view: ConfigView, model: nn.Module, download: bool = False
) -> Iterator[Finding]:
    """Read the files that training starts from, without running any code in them, and load them.

    Args:
        view: The config.
        model: Its model, whose own backbones are changed.
        download: Whether to download what is at an address, and not in the cache.
    """
    if view.config.get('resume'):
        return
    try:
        if view.load_from:
            starts = [('model', model, view.load_from)]
        else:
            starts = list(pretrained_parts(model))
        for path, part, file in starts:
            if is_address(file) and not download:
                yield note('Weights', f'{file} is an address: it was not downloaded')
            else:
                yield from _check_fit(view, path, part, file)
    except CheckpointError as err:
        yield error('Weights', str(err), 'ptnt checkpoint inspect shows the content of a file')


def _check_fit(view: ConfigView, path: str, part: nn.Module, file: str) -> Iterator[Finding]:
    if view.load_from:
        report = fit(read_checkpoint(file, 'meta'), part, BackboneOfWhole(), file).report
    else:
        with undisturbed(view.scope):
            report = try_pretrained(part)
    number = len(report.loaded) + len(report.resized)
    what = 'the backbone' if view.load_from or path == 'backbone' else path or 'the model'
    if view.load_from and not number:
        yield note('Weights', f'{file} was not compared: the model has no backbone')
        return
    beside = f'; {file} has {len(report.unused)} more' if report.unused else ''
    yield ok('Weights', f'{number} weights of {what} fit{beside}')
    if report.drawn:
        yield warning(
            'Weights',
            f'{len(report.drawn)} weights of {what} are not in {file} and start at random: '
            f'{first_few(report.drawn)}',
        )


def check_stored_names(
    view: ConfigView, model: nn.Module, names: tuple[str, ...]
) -> Iterator[Finding]:
    """Compare the class names in the file of a whole model with those of the training data."""
    weights = view.load_from
    # Other checks report what cannot be read.
    if not weights or is_address(weights) or not names:
        return
    try:
        meta = read_checkpoint(weights, 'meta').get('meta') or {}
    except CheckpointError:
        return
    try:
        if different := compare_class_names(meta, dict(classes=names), model, weights):
            yield warning('load_from', different)
    except UserError as err:
        yield error('load_from', str(err))


def check_statistics(view: ConfigView, model: nn.Module) -> Iterator[Finding]:
    """Find BatchNorm that keeps its initial statistics, as mmdet's ResNet does by default."""
    backbone = getattr(model, 'backbone', None)
    starts = view.starting_weights or view.model.get('init_cfg')
    # Those of our family raise an error at the start.
    if backbone is None or isinstance(backbone, Backbone) or starts:
        return
    backbone.train()
    norms = [part for part in backbone.modules() if isinstance(part, _BatchNorm)]
    if norms and not any(part.training for part in norms):
        what = 'BatchNorm keeps its initial statistics, and there are no weights to start from'
        yield warning('model.backbone', what, 'write norm_eval=False, or start from weights')
