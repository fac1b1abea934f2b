"""Where training starts from: pretrained weights that can be read and fit."""

from collections.abc import Callable, Iterator
from functools import partial

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ptnt_mm.models.backbone import Backbone
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, error, note, ok, warning
from ptnt_mm.utils.text import first_few
from ptnt_mm.weights.class_names import compare_class_names
from ptnt_mm.weights.fit import BackboneOfWhole, LoadReport, fit
from ptnt_mm.weights.pretrained import pretrained_parts
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.files import is_address
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.weights.tracing import try_pretrained
from ptnt_mm.workbench.check.trial.setup import undisturbed
from ptnt_mm.workbench.config.initial_weights import check_start
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import ConfigView

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
        for path, file, load in _starts(view, model):
            if is_address(file) and not download:
                yield note('Weights', f'{file} is an address: it was not downloaded')
                continue
            with undisturbed(view.scope):
                report = load()
            yield from _describe_fit(path, file, report)
    except CheckpointError as err:
        yield error('Weights', str(err), 'ptnt checkpoint inspect shows the content of a file')


def _starts(
    view: ConfigView, model: nn.Module
) -> Iterator[tuple[str, str, Callable[[], LoadReport]]]:
    """The parts of a model that start from a file: the path, the file, a function to load it."""
    if file := view.load_from:
        yield 'backbone', file, partial(_fit_whole, model, file)
        return
    for path, part, file in pretrained_parts(model):
        yield path, file, partial(try_pretrained, part)


def _fit_whole(model: nn.Module, file: str) -> LoadReport:
    return fit(read_checkpoint(file, 'meta'), model, BackboneOfWhole(), file).report


def _describe_fit(path: str, file: str, report: LoadReport) -> Iterator[Finding]:
    number = len(report.loaded) + len(report.resized)
    if not number:
        yield note('Weights', f'{file} was not compared: the model has no backbone')
        return
    what = 'the backbone' if path == 'backbone' else path or 'the model'
    beside = f'; {file} has {len(report.unused)} more' if report.unused else ''
    yield ok('Weights', f'{number} weights of {what} fit{beside}')
    if report.drawn:
        yield warning(
            'Weights',
            f'{len(report.drawn)} weights of {what} are not in {file} and start random: '
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
