"""Checks of the truth, and an evaluation of one image, before ``ptnt test`` begins with all."""

from collections.abc import Iterator, Sequence

from ptnt_mm.check.class_names import faults_of_names, names_for_heads
from ptnt_mm.check.data_sets import LoadedDataset
from ptnt_mm.check.evaluated_files import check_evaluated_files
from ptnt_mm.check.heads import check_classes_of_heads
from ptnt_mm.check.reading import read_data
from ptnt_mm.check.trial.evaluation_step import Evaluation, why_not_evaluated, with_tta_pipeline
from ptnt_mm.check.trial.failed_steps import describe_bug
from ptnt_mm.check.trial.setup import config_for_trial, why_not_tried
from ptnt_mm.config.build import build_model
from ptnt_mm.config.hosts import import_host
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, Severity, lines, of_kind


def check_before_testing(view: ConfigView, tta: bool = False) -> list[str]:
    """Evaluate one image of the test split, with random weights; return the warnings.

    Before, class names and annotation files are compared.

    Parts that cannot be tried this way are left to the test itself.

    Args:
        view: The config, without test-time augmentation.
        tta: Whether to evaluate with its ``tta_model`` and ``tta_pipeline``.

    Raises:
        UserError: if the evaluation fails, or would compare with the wrong objects; the message has
            the wrong setting.
    """
    try:
        found = list(_evaluate(view, tta))
    except Exception as error:  # a bug in a check must not stop a test
        return [f'the check of the evaluation: {describe_bug(error)}']
    if errors := of_kind(found, Severity.ERROR):
        listed = '\n'.join(lines(errors))
        raise UserError(f'{view.name} cannot be evaluated:\n{listed}')
    return []


def _evaluate(view: ConfigView, tta: bool) -> Iterator[Finding]:
    import_host(view.scope)
    if view.host is None or why_not_evaluated(view, 'test'):
        return
    data, _ = read_data(view, ('test',))
    known = list(_check_truth(view, data))
    yield from known
    if of_kind(known, Severity.ERROR):
        return
    # A data set that was not read may be large: it is not built for a single image.
    if not data or not all(data_set.sample_entries for data_set in data):
        return
    counts = list(check_classes_of_heads(view, names_for_heads(data)))
    yield from counts
    if of_kind(counts, Severity.ERROR):
        return
    model = build_model(config_for_trial(view))
    if not why_not_tried(view, 'test', data, model):
        view = with_tta_pipeline(view) if tta else view
        yield from Evaluation(view, 'test', model, data, with_tta=tta).check()


def _check_truth(view: ConfigView, data: Sequence[LoadedDataset]) -> Iterator[Finding]:
    """Find what would compare predictions with the wrong objects, without any failure."""
    for dataset in data:
        yield from of_kind(faults_of_names(dataset), Severity.ERROR)
    if view.scope not in ('mmseg', 'mmpretrain'):
        yield from check_evaluated_files(data, view, 'test')
