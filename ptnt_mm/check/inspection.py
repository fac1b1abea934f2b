"""All checks of a config, in order: a quick half, and a thorough one that opens images."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from mmengine.config import Config
from torch import nn

from ptnt_mm.check.files import check_files
from ptnt_mm.check.heads import check_built_heads, check_classes_of_heads, check_neck
from ptnt_mm.check.host import Check, Findings
from ptnt_mm.check.hosts import HOSTS, host_of
from ptnt_mm.check.images import (
    check_images_are_there,
    check_images_open,
    check_splits_are_apart,
)
from ptnt_mm.check.memory import check_memory, measure
from ptnt_mm.check.misspelt import check_parameter_names, check_spelling
from ptnt_mm.check.recipe import check_batch, check_learning_rate, check_there_are_weights
from ptnt_mm.check.report import lines, of_kind
from ptnt_mm.check.strides import check_strides
from ptnt_mm.check.weights import check_normalisation, check_weights_are_there, check_weights_fit
from ptnt_mm.engine.build import build_model
from ptnt_mm.engine.hosts import import_host
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, Severity, error, note, warning


class Inspection:
    """A config, and what the checks of it share.

    Args:
        config: The config, with all flags brought into it.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.
        gpus: The number of processes that will train, one for each GPU.
        stumbled: Makes a finding of a check that fails itself.

    Raises:
        UserError: if the host library cannot be imported.
    """

    def __init__(
        self,
        config: Config,
        splits: tuple[str, ...],
        gpus: int = 1,
        stumbled: Callable[[str, str], Finding] = error,
    ):
        import_host(config.get('default_scope') or 'mmengine')
        self.config = config
        self.gpus = gpus
        self.stumbled = stumbled
        self.host = host_of(config, splits)
        self.model: nn.Module | None = None
        self.findings: list[Finding] = []
        self.of_config = (
            Check('settings', lambda: check_spelling(config)),
            Check('model', self.small_run),
        )
        """Those that read no data; :attr:`before_training` follows them."""
        # What training says itself when it begins is in the second part alone.
        data = (
            Check('files', lambda: check_files(config, splits)),
            Check('annotations', self.host.annotations),
            Check('images', self.images_are_there, self.images_open),
            Check('classes', self.host.class_names),
            Check('heads', self.heads, self.built_heads),
            *self.host.further(),
        )
        start = (
            Check('batch and learning rate', self.learning_rate),
            Check('weights', self.weights_are_there, self.weights_fit),
        )
        scale = Check('mean and std', lambda: check_normalisation(config))
        self.checks = (*self.of_config, *data, *start, scale, Check('memory', thorough=self.memory))
        """Every check, in the order of the report."""
        self.before_training = (*data, scale)
        """Those that training begins with."""

    def run(self, checks: tuple[Check, ...], thorough: bool) -> Iterator[tuple[str, list]]:
        """Run checks; the subject of each with its findings, as soon as they are there."""
        for check in checks:
            found = self._found(check.quick)
            if thorough:
                found += self._found(check.thorough)
            self.findings += found
            if found:
                yield check.subject, found

    def _found(self, look: Callable[[], Findings]) -> list[Finding]:
        """What a check finds; what it stumbles over itself is a finding, and never a traceback."""
        found: list[Finding] = []
        try:
            found.extend(map(_milder, look()))
        except UserError as err:
            found.append(error('config', str(err)))
        except Exception as err:  # a config and an annotation file may hold anything
            kind = type(err).__name__
            what = f'this could not be checked to its end: {kind}: {err}'
            found.append(self.stumbled('config', what))
        return found

    def images_are_there(self) -> Findings:
        """List images."""
        yield from check_images_are_there(self.host.images, self.host.listing)
        yield from check_splits_are_apart(self.host.images)

    def images_open(self) -> Findings:
        """Decode images."""
        yield from check_images_open(self.host.images, self.host.listing)

    def heads(self) -> Findings:
        """Read the model's settings."""
        yield from check_classes_of_heads(self.config, self.host.classes)
        yield from check_neck(self.config)

    def small_run(self) -> Findings:
        """Build the model and run it on a small image."""
        if not of_kind(self.findings, Severity.ERROR):
            self.model = build_model(self.config)
            yield from check_parameter_names(self.config, self.model)
            yield from check_strides(self.config, self.model)

    def built_heads(self) -> Findings:
        """Look at the built model."""
        self.model = self.model or build_model(self.config)
        yield from check_built_heads(self.config, self.model, self.host.classes)

    def learning_rate(self) -> Findings:
        """Read batch and rate."""
        yield from check_batch(self.config, self.gpus)
        yield from check_learning_rate(self.config, self.gpus)

    def weights_are_there(self) -> Findings:
        """Look for the weights to start from."""
        found = list(check_weights_are_there(self.config))
        yield from found or check_there_are_weights(self.config)

    def weights_fit(self) -> Findings:
        """Read the weights to start from."""
        if self.model is not None:
            yield from check_weights_fit(self.config, self.model)

    def memory(self) -> Findings:
        """Take a step of training, if all that comes before it is sound."""
        if of_kind(self.findings, Severity.ERROR):
            yield note('Memory', 'not estimated: a step of training needs a config without errors')
        elif self.config.get('default_scope') not in HOSTS:
            yield note('Memory', f'estimated for models of {" and ".join(HOSTS)} only')
        elif self.model is not None:
            trial = self.host.trial(self.model, self.gpus)
            step = measure(self.config, self.model, trial.loss, trial.area)
            yield from check_memory(self.config, step)


def check_before_training(config: Config) -> list[str]:
    """Run the quick half on what a training reads; the warnings, in a line each.

    Raises:
        UserError: if it found errors: lists them all.
    """
    # A mistake of ours in a check is no reason not to train.
    inspection = Inspection(config, ('train', 'val'), stumbled=warning)
    for checks in (inspection.of_config, inspection.before_training):
        for _ in inspection.run(checks, thorough=False):
            pass
        errors = of_kind(inspection.findings, Severity.ERROR)
        if errors:
            listed = '\n'.join(lines(errors))
            raise UserError(
                f'{config.filename} would break, or not do what it says:\n{listed}\n'
                'tools/check_config.py looks further'
            )
    return [str(finding) for finding in of_kind(inspection.findings, Severity.WARNING)]


def _milder(finding: Finding) -> Finding:
    """An error in what only testing needs is a warning: training works."""
    if finding.where == 'test' and finding.severity is Severity.ERROR:
        return replace(finding, severity=Severity.WARNING)
    return finding
