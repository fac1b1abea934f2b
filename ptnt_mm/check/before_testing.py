"""Checks of the truth, and an evaluation of one image, before ``ptnt test`` begins with all."""

from collections.abc import Iterator, Sequence

from mmengine.config import Config

from ptnt_mm.check.class_names import faults_of_names, names_for_heads
from ptnt_mm.check.data_sets import Data
from ptnt_mm.check.evaluated_files import check_evaluated_files
from ptnt_mm.check.heads import check_classes_of_heads
from ptnt_mm.check.reading import read_data
from ptnt_mm.check.trial.evaluation_step import Evaluation, why_not_evaluated, with_tta_pipeline
from ptnt_mm.check.trial.failed_steps import describe_bug
from ptnt_mm.check.trial.setup import config_for_trial, why_not_tried
from ptnt_mm.config.build import build_model
from ptnt_mm.config.hosts import HOSTS, import_host, scope_of
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, Severity, lines, of_kind


def check_before_testing(config: Config, tta: bool = False) -> list[str]:
    """Evaluate one image of the test split, with random weights; return the warnings.

    Before, class names and annotation files are compared.

    Parts that cannot be tried this way are left to the test itself.

    Args:
        config: The config, without test-time augmentation.
        tta: Whether to evaluate with its ``tta_model`` and ``tta_pipeline``.

    Raises:
        UserError: if the evaluation fails, or would compare with the wrong objects; the message has
            the wrong setting.
    """
    try:
        found = list(_evaluate(config, tta))
    except Exception as error:  # a bug in a check must not stop a test
        return [f'the check of the evaluation: {describe_bug(error)}']
    if errors := of_kind(found, Severity.ERROR):
        listed = '\n'.join(lines(errors))
        raise UserError(f'{config.filename or "the config"} cannot be evaluated:\n{listed}')
    return []


def _evaluate(config: Config, tta: bool) -> Iterator[Finding]:
    import_host(scope_of(config))
    if scope_of(config) not in HOSTS or why_not_evaluated(config, 'test'):
        return
    data, _ = read_data(config, ('test',))
    known = list(_check_truth(config, data))
    yield from known
    if of_kind(known, Severity.ERROR):
        return
    # A data set that was not read may be large: it is not built for a single image.
    if not data or not all(data_set.few for data_set in data):
        return
    counts = list(check_classes_of_heads(config, names_for_heads(data)))
    yield from counts
    if of_kind(counts, Severity.ERROR):
        return
    model = build_model(config_for_trial(config))
    if not why_not_tried(config, 'test', data, model):
        config = with_tta_pipeline(config) if tta else config
        yield from Evaluation(config, 'test', model, data, with_tta=tta).check()


def _check_truth(config: Config, data: Sequence[Data]) -> Iterator[Finding]:
    """Find what would compare predictions with the wrong objects, without any failure."""
    for dataset in data:
        yield from of_kind(faults_of_names(dataset), Severity.ERROR)
    if scope_of(config) not in ('mmseg', 'mmpretrain'):
        yield from check_evaluated_files(data, config, 'test')
