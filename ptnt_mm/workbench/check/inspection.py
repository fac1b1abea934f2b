"""All checks of a config, in the order of the report.

A check is a generator function that yields findings, in the file of its subject. The quick half
of the checks reads the config, the annotation files and the names in folders, builds the model, and
trains and evaluates it on an image or two; the thorough half opens all images, and the weights.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from mmengine.config import Config
from torch import nn

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import (
    Finding,
    Severity,
    as_warning,
    error,
    lines,
    note,
    of_kind,
    warning,
)
from ptnt_mm.utils.progress import waiting
from ptnt_mm.workbench.check import evaluators, mask_settings
from ptnt_mm.workbench.check.class_names import (
    check_class_names,
    findings_of_names,
    names_for_heads,
)
from ptnt_mm.workbench.check.coco_annotations import check_annotations, load_annotations
from ptnt_mm.workbench.check.data_sets import LoadedDataset, check_files
from ptnt_mm.workbench.check.image_lists import (
    check_labels,
    check_lists_of_masks,
    check_pairs,
    list_images,
)
from ptnt_mm.workbench.check.images import check_images_are_there, check_images_open
from ptnt_mm.workbench.check.mask_values import check_masks
from ptnt_mm.workbench.check.misspelt_settings import (
    check_parameter_names,
    check_safeguards,
    check_spelling,
)
from ptnt_mm.workbench.check.network import (
    check_built_heads,
    check_classes_of_heads,
    check_normalisation,
    check_padding,
    check_strides,
)
from ptnt_mm.workbench.check.objects import check_boxes, check_filtering, check_object_masks
from ptnt_mm.workbench.check.rotated_boxes import (
    check_boxes_are_inside,
    check_lists_of_boxes,
    check_rotated_boxes,
)
from ptnt_mm.workbench.check.rules import KEYS, RULES, check_rules
from ptnt_mm.workbench.check.schedule import (
    LEARNING_RATE,
    check_batch,
    check_learning_rate,
    check_lengths,
)
from ptnt_mm.workbench.check.trial.evaluation import Evaluation, why_not_evaluated
from ptnt_mm.workbench.check.trial.failed_steps import describe_bug
from ptnt_mm.workbench.check.trial.setup import model_for_trial, why_not_tried
from ptnt_mm.workbench.check.trial.steps import TriedSteps, are_evaluated_alike
from ptnt_mm.workbench.check.weights import (
    check_statistics,
    check_stored_names,
    check_weights_are_there,
    check_weights_fit,
)
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.initial_weights import use_pretrained
from ptnt_mm.workbench.config.read import require_keys
from ptnt_mm.workbench.config.safeguards import safeguard_names
from ptnt_mm.workbench.config.tta import check_tta_scales
from ptnt_mm.workbench.config.view import ConfigView

CHECKS = (
    'settings', 'model', 'batch_and_learning_rate', 'mean_and_std', 'files',
    'annotations', 'images', 'classes', 'heads', 'masks', 'zero_label', 'pipelines', 'crops',
    'ignored_pixels', 'images_with_objects', 'boxes', 'evaluation', 'length', 'weights',
    'training_step', 'evaluated_image', 'augmented_test',
)  # fmt: skip
"""The names of all checks, by which ``safeguards=dict(NAME=None)`` makes their errors warnings."""

_HOPELESS = {'files', 'training_step', 'evaluated_image'}
"""Checks with errors at which the run itself would stop, too, if they were overruled."""

# Called for each subject, with its findings, once they are known.
OnFindings = Callable[[str, list[Finding]], None]


def check(
    config: Config,
    splits: tuple[str, ...] = ('train', 'val', 'test'),
    gpus: int = 1,
    thorough: bool = True,
    on_findings: OnFindings = lambda subject, findings: None,
    pretrained: Path | str | None = None,
) -> list[Finding]:
    """Find what would stop a run or silently spoil its result, as ``ptnt check`` does.

    Args:
        config: A complete config; it is not changed.
        splits: The data loaders to check.
        on_findings: Called with each subject in turn.
        pretrained: Weights of the backbone: a file, or a name from ptnt weights.
        gpus: Number of GPUs for training: 1 by default.
        thorough: If False, do not open weights; open only the images for a training step and an
            evaluation.

    Returns:
        All findings, also what is right, in the order of the subjects.

    Raises:
        UserError: if the host library cannot be imported, or the config is not complete or has no
            backbone for ``pretrained``.
    """
    require_keys(config, ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper'))
    view = ConfigView(copy.deepcopy(config))
    if pretrained is not None:
        use_pretrained(view, str(pretrained))
    inspection = Inspection(view, splits, gpus, thorough, on_findings)
    inspection.check_all()
    return inspection.findings


def check_before_training(view: ConfigView) -> list[str]:
    """Run the quick half on the inputs of a run; return the warnings, in a line each.

    Raises:
        UserError: if there are errors, with all of them. Errors in settings come without those of
            the data, which takes longer to read.
    """
    # A bug in a check must not stop a run.
    inspection = Inspection(view, ('train', 'val'), thorough=False, report_failure=warning)
    inspection.check_settings()
    if not inspection.errors:
        inspection.check_data()
        if inspection.model is not None:
            inspection.run('weights', check_weights_fit(view, inspection.model, download=True))
        inspection.check_steps()
    # No run can go on without a model.
    is_hopeless = inspection.model is None and 'model' in inspection.failed
    # The networks of the hosts pass over weights that do not fit; ours refuse them.
    starts_loudly = view.is_of_family or view.load_from is not None
    is_hopeless |= starts_loudly and 'weights' in inspection.failed
    checks = () if is_hopeless else inspection.failed
    _require_no_errors(f'{view.name} has errors', inspection.errors, checks)
    warnings = of_kind(inspection.findings, Severity.WARNING)
    # The run itself reports this, once the number of processes is known.
    return [str(finding) for finding in warnings if finding.where != LEARNING_RATE]


def _require_no_errors(what: str, errors: list[Finding], checks: Collection[str]) -> None:
    """Raise a UserError with all errors, if there are any.

    Args:
        what: The title.
        errors: The errors.
        checks: The names of the checks that found them. They can be left out to continue anyway,
            unless the run would stop at the same.
    """
    if errors:
        listed = '\n'.join(lines(errors))
        names = dict.fromkeys(checks) if _HOPELESS.isdisjoint(checks) else ()
        options = ' '.join(f'`safeguards.{name}=None`' for name in names)
        advice = f' To continue anyway, add {options}' if options else ''
        raise UserError(f'{what}:\n{listed}\nptnt check reports more.{advice}')


@dataclass
class Inspection:
    """A config, the shared state of its checks, and their findings.

    Attributes:
        report_failure: Creates a finding from an exception in a check.
        data: The data sets, once they are read.
        model: The model, once it is built.
        failed: The names of the checks that found errors, of those in `CHECKS`.
    """

    view: ConfigView
    splits: tuple[str, ...]
    gpus: int = 1
    thorough: bool = True
    on_findings: OnFindings = lambda subject, findings: None
    report_failure: Callable[[str, str], Finding] = error
    data: Sequence[LoadedDataset] = ()
    model: nn.Module | None = None
    findings: list[Finding] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self):
        import_host(self.view.scope)

    @property
    def errors(self) -> list[Finding]:
        """The errors so far."""
        return of_kind(self.findings, Severity.ERROR)

    def run(
        self, subject: str, *quick: Iterable[Finding], thorough: Iterable[Finding] = ()
    ) -> None:
        """Run the checks of a subject; an exception in a check is also a finding.

        Args:
            subject: The title in the report, see :func:`check_name`.
            quick: Findings of the quick half.
            thorough: Findings of the other half.
        """
        found: list[Finding] = []
        for findings in (*quick, thorough) if self.thorough else quick:
            try:
                found.extend(map(_test_only_as_warning, findings))
            except UserError as err:
                found.append(error('config', str(err)))
            except Exception as err:  # a config and an annotation file may contain anything
                found.append(self.report_failure('config', describe_bug(err)))
        name = check_name(subject)
        if name in self.view.left_out:
            found = [_overruled(finding, name) for finding in found]
        elif of_kind(found, Severity.ERROR):
            self.failed.append(name)
        self.findings += found
        if found:
            self.on_findings(subject, found)

    def check_all(self) -> None:
        """Run all checks."""
        self.check_settings()
        self.check_data()
        self.check_start()
        self.check_steps()

    def check_settings(self) -> None:
        """Run the checks that read no data."""
        view = self.view
        names = check_safeguards(view, (*CHECKS, *safeguard_names()))
        self.run('settings', check_spelling(view), names, check_rules(view, RULES, KEYS))
        self.run('model', self._build_model())
        rate = check_learning_rate(view, self.gpus)
        self.run('batch and learning rate', check_batch(view, self.gpus), rate)
        self.run('mean and std', check_normalisation(view))

    def check_data(self) -> None:
        """Run the checks of the data and the model."""
        view = self.view
        self.run('files', check_files(view, self.splits))
        self.run('annotations', self._read_annotations())
        data, model = self.data, self.model
        self.run('images', check_images_are_there(data), thorough=check_images_open(data))
        self.run('classes', check_class_names(data))
        classes = names_for_heads(data)
        counts = check_classes_of_heads(view, classes)
        built = () if model is None else check_built_heads(view, model, classes)
        self.run('heads', counts, thorough=built)
        if view.scope == 'mmseg':
            self.run('masks', check_pairs(data), thorough=check_masks(data, view))
            self.run('zero label', mask_settings.check_zero_label(data))
            self.run('pipelines', mask_settings.check_loading(data, view))
            self.run('crops', mask_settings.check_crops(data, view))
            self.run('ignored pixels', mask_settings.check_ignored(data, view))
            self.run('evaluation', evaluators.check_evaluators_of_masks(data, view, self.splits))
        elif view.scope == 'mmpretrain':
            self.run('evaluation', evaluators.check_evaluators_of_labels(view, self.splits))
        elif view.scope == 'mmrotate':
            inside = check_boxes_are_inside(data)
            self.run('boxes', check_rotated_boxes(data), thorough=inside)
        else:
            self.run('images with objects', check_filtering(data, view))
            self.run('boxes', check_boxes(data))
            self.run('masks', check_object_masks(data, view, self.thorough))
            self.run('evaluation', evaluators.check_evaluators_of_objects(data, view))
        self.run('length', check_lengths(view, data, self.gpus))

    def check_start(self) -> None:
        """Run the checks of the weights that training starts from."""
        view, model = self.view, self.model
        fit = () if model is None else check_weights_fit(view, model)
        statistics = () if model is None else check_statistics(view, model)
        names = () if model is None else check_stored_names(view, model, names_for_heads(self.data))
        self.run('weights', check_weights_are_there(view), statistics, names, thorough=fit)

    def _build_model(self) -> Iterator[Finding]:
        # An error elsewhere, such as in a hook, does not matter here.
        if any(finding.where.startswith(('model', 'config')) for finding in self.errors):
            yield note('model', 'not built: correct its settings first')
            return
        self.model = model_for_trial(self.view)
        yield from check_parameter_names(self.view, self.model)
        yield from check_strides(self.view, self.model)
        yield from check_padding(self.view, self.model)

    def _read_annotations(self) -> Iterator[Finding]:
        with waiting('Reading annotations'):
            self.data, findings = read_data(self.view, self.splits)
        yield from findings

    def check_steps(self) -> None:
        """Train and evaluate on an image or two, if the splits include it."""
        steps = TriedSteps(
            self.view, self.model, self.data, self.gpus, self.thorough, self.findings
        )
        if 'train' in self.splits:
            self.run('training step', steps.check_training())
        loops = [split for split in ('val', 'test') if split in self.splits]
        for split in loops:
            if split == 'val' or 'val' not in loops or not are_evaluated_alike(self.view):
                self.run(f'evaluated image ({split})', steps.check_evaluation(split))
        if 'test' in loops and self.thorough:
            self.run('augmented test', steps.check_tta())


def check_name(subject: str) -> str:
    """The name in `CHECKS` of a subject, such as 'evaluated image (val)'."""
    return subject.partition(' (')[0].replace(' ', '_')


def _overruled(finding: Finding, name: str) -> Finding:
    """A finding of a check that the config leaves out: an error is a warning that says why."""
    if finding.severity is not Severity.ERROR:
        return finding
    text = f'{finding.what} (an error, overruled by safeguards.{name}=None)'
    return as_warning(replace(finding, what=text))


def _test_only_as_warning(finding: Finding) -> Finding:
    """An error in what only testing needs is a warning: training works."""
    if finding.where == 'test' or finding.where.startswith(('test_', 'tta_')):
        return as_warning(finding)
    return finding


def check_before_testing(view: ConfigView, augmented: ConfigView | None = None) -> list[str]:
    """Evaluate one image of the test split, with random weights; return the warnings.

    Class names and annotation files are compared first.

    Parts that cannot be tried this way are left to the test itself.

    Args:
        view: The config, without test-time augmentation.
        augmented: The same with it, see ``with_tta``; None without.

    Raises:
        UserError: if the evaluation fails, or would compare with the wrong objects; the message has
            the wrong setting.
    """
    overruled = [] if augmented is None else list(map(str, check_tta_scales(view)))
    errors, name = [], ''
    try:
        for name, findings in _checks_of_a_test(view, augmented):
            errors = of_kind(findings, Severity.ERROR)
            if errors and name not in view.left_out:
                break
            overruled += [str(_overruled(finding, name)) for finding in errors]
            errors = []
    except Exception as error:  # a bug in a check must not stop a test
        return [f'the check of the evaluation: {describe_bug(error)}']
    _require_no_errors(f'{view.name} cannot be evaluated', errors, [name])
    return overruled


def _checks_of_a_test(
    view: ConfigView, augmented: ConfigView | None
) -> Iterator[tuple[str, Iterable[Finding]]]:
    """Yield findings with the name of their check."""
    import_host(view.scope)
    if view.host is None or why_not_evaluated(view, 'test'):
        return
    data, _ = read_data(view, ('test',))
    yield 'classes', [found for dataset in data for found in findings_of_names(dataset)]
    if view.scope not in ('mmseg', 'mmpretrain', 'mmrotate'):
        yield 'evaluation', evaluators.check_evaluated_files(data, view, 'test')
    # A data set that was not read may be large: it is not built for a single image.
    if not data or not all(data_set.sample_entries for data_set in data):
        return
    yield 'heads', check_classes_of_heads(view, names_for_heads(data))
    model = model_for_trial(view)
    if not why_not_tried(view, 'test', data, model):
        tried, with_tta = augmented or view, augmented is not None
        yield 'evaluated_image', Evaluation(tried, 'test', model, data, with_tta=with_tta).check()


_LOADING = {
    'mmdet': (load_annotations, lambda data, _: check_annotations(data)),
    'mmseg': (list_images, check_lists_of_masks),
    'mmpretrain': (list_images, check_labels),
    'mmrotate': (list_images, check_lists_of_boxes),
}
"""For each host, the function that reads its data sets, and the first check of them."""


def read_data(view: ConfigView, splits: tuple[str, ...]) -> tuple[Sequence[Any], Iterator[Finding]]:
    """Read the data sets of some splits with the host, which is already imported.

    Returns:
        The data sets, without duplicates; and findings about errors and omissions, some of which
        are only looked for when they are iterated over.
    """
    # Other libraries have data sets like mmdet's, or none.
    read, check = _LOADING.get(view.scope, _LOADING['mmdet'])
    data, findings = read(view, splits)
    return data, chain(findings, check(data, view))
