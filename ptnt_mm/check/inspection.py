"""All checks of a config, in order: a quick half, and a thorough one that opens images."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from mmengine.config import Config
from torch import nn

from ptnt_mm.check.detection.boxes import check_boxes
from ptnt_mm.check.detection.classes import are_known, check_classes
from ptnt_mm.check.detection.data import DetectionData, load, read_sound
from ptnt_mm.check.detection.evaluation import check_evaluation
from ptnt_mm.check.detection.filtering import check_filtering
from ptnt_mm.check.detection.masks import check_masks
from ptnt_mm.check.detection.trial import Trial, build_model
from ptnt_mm.check.files import check_files
from ptnt_mm.check.finding import Finding, Severity, error, note, warning
from ptnt_mm.check.heads import check_built_heads, check_classes_of_heads, check_neck
from ptnt_mm.check.images import (
    ImageFile,
    check_images_are_there,
    check_images_open,
    check_splits_are_apart,
)
from ptnt_mm.check.memory import check_memory, measure
from ptnt_mm.check.recipe import check_batch, check_learning_rate, check_there_are_weights
from ptnt_mm.check.report import lines, of_kind
from ptnt_mm.check.weights import check_normalisation, check_weights_are_there, check_weights_fit
from ptnt_mm.engine.build import import_host
from ptnt_mm.errors import UserError

Findings = Iterator[Finding]


class Inspection:
    """A config, and what the checks of it share.

    Args:
        config: The config, with all flags brought into it.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.
        gpus: The number of processes that will train, one for each GPU.

    Raises:
        UserError: if the host library cannot be imported.
    """

    def __init__(self, config: Config, splits: tuple[str, ...], gpus: int = 1):
        import_host(config.get('default_scope') or 'mmengine')
        self.config = config
        self.splits = splits
        self.gpus = gpus
        self.model: nn.Module | None = None
        self.findings: list[Finding] = []

    @cached_property
    def _loaded(self) -> tuple[list[DetectionData], list[Finding]]:
        return load(self.config, self.splits)

    @property
    def data(self) -> list[DetectionData]:
        """The data sets."""
        return self._loaded[0]

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names of the training data; none if they are not known."""
        return next((one.classes for one in self.data if one.trains and are_known(one)), ())

    @cached_property
    def images(self) -> list[ImageFile]:
        """All images that the annotation files list."""
        return [
            ImageFile(data.name, data.image_path(image), (image['width'], image['height']))
            for data in self.data
            if data.file is not None
            for image in data.file.images.values()
        ]

    def run(self, checks: tuple['Check', ...], thorough: bool) -> Iterator[tuple[str, list]]:
        """Run checks; the subject of each with its findings, as soon as they are there."""
        for check in checks:
            found = self._found(check.quick)
            if thorough and check.thorough is not None:
                found += self._found(check.thorough)
            self.findings += found
            if found:
                yield check.subject, found

    def _found(self, look: Callable[['Inspection'], Findings]) -> list[Finding]:
        """What a check finds; what it stumbles over itself is a finding, and never a traceback."""
        found: list[Finding] = []
        try:
            found.extend(map(_milder, look(self)))
        except UserError as err:
            found.append(error('config', str(err)))
        except Exception as err:  # a config and an annotation file may hold anything
            kind = type(err).__name__
            found.append(warning('config', f'this could not be checked to its end: {kind}: {err}'))
        return found

    def annotations(self) -> Findings:
        """Read the annotation files."""
        yield from self._loaded[1]
        yield from read_sound(self.data)

    def images_are_there(self) -> Findings:
        """List images."""
        yield from check_images_are_there(self.images)
        yield from check_splits_are_apart(self.images)

    def heads(self) -> Findings:
        """Read the model's settings."""
        yield from check_classes_of_heads(self.config, self.classes)
        yield from check_neck(self.config)

    def built_heads(self) -> Findings:
        """Build the model."""
        self.model = build_model(self.config)
        yield from check_built_heads(self.config, self.model, self.classes)

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
        elif self.config.get('default_scope') != 'mmdet':
            yield note('Memory', 'estimated for models of mmdet only')
        elif self.model is not None:
            trial = Trial(self.config, self.model)
            step = measure(self.config, self.model, trial.loss, trial.area)
            yield from check_memory(self.config, step)


@dataclass(frozen=True)
class Check:
    """A subject, and what looks at it.

    Attributes:
        subject: The heading.
        quick: Reads the config and the annotation files.
        thorough: Opens images and weights, or builds the model.
    """

    subject: str
    quick: Callable[[Inspection], Findings]
    thorough: Callable[[Inspection], Findings] | None = None


def _nothing(inspection: Inspection) -> Findings:
    """A check that has no quick half."""
    return iter(())


# What training says itself when it begins is in the second part alone.
_DATA = (
    Check('files', lambda on: check_files(on.config, on.splits)),
    Check('annotations', Inspection.annotations),
    Check('images', Inspection.images_are_there, lambda on: check_images_open(on.images)),
    Check('classes', lambda on: check_classes(on.data)),
    Check('heads', Inspection.heads, Inspection.built_heads),
    Check('images with objects', lambda on: check_filtering(on.data, on.config)),
    Check('boxes', lambda on: check_boxes(on.data)),
    Check('masks', lambda on: check_masks(on.data, on.config)),
    Check('evaluation', lambda on: check_evaluation(on.data, on.config)),
)
_START = (
    Check('batch and learning rate', Inspection.learning_rate),
    Check('weights', Inspection.weights_are_there, Inspection.weights_fit),
)
_SCALE = (Check('mean and std', lambda on: check_normalisation(on.config)),)
_STEP = (Check('memory', _nothing, Inspection.memory),)

ALL = (*_DATA, *_START, *_SCALE, *_STEP)
"""Every check, in the order of the report."""


def check_before_training(config: Config) -> list[str]:
    """Run the quick half on what a training reads; the warnings, in a line each.

    Raises:
        UserError: if it found errors: lists them all.
    """
    inspection = Inspection(config, ('train', 'val'))
    for _ in inspection.run((*_DATA, *_SCALE), thorough=False):
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
