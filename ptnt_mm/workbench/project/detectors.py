"""The models of a project, without their backbones, found by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mmengine.config import Config, ConfigDict

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.workbench.config.zoo import config_from_file, config_root

Place = tuple[str | int, ...]
"""Where a setting is: keys of dicts and indices of lists."""


@dataclass(frozen=True)
class Detector:
    """A detector, segmenter or classifier, with what a recipe needs to know about it.

    Attributes:
        name: Its name, and that of its fragment.
        task: The task that it is for, one of ``labels.TASKS``.
        finest: Stride of its first level in pixels.
        coarsest: Stride of the last level that it resizes, with any backbone.
        smallest: Side of the smallest object that it finds, in pixels; None without objects.
        anchors: Settings of the model for anchors below 32 pixels, by the side of the smallest.
        head_lr: Learning rate of neck and head as a multiple of a pretrained backbone's.
    """

    name: str
    task: str
    finest: int
    coarsest: int = 32
    smallest: int | None = None
    anchors: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    head_lr: float = 1

    @property
    def fragment(self) -> str:
        """The fragment of a config that contains the model."""
        return f'_base_/project/models/{self.name}.py'

    @cached_property
    def model(self) -> ConfigDict:
        """The settings of the model in its fragment."""
        return config_from_file(config_root() / self.fragment).model

    @property
    def divisor(self) -> int:
        """The number of pixels whose multiples its fragment pads images to."""
        stated = self.model.get('data_preprocessor') or {}
        return stated.get('pad_size_divisor') or stated.get('test_cfg', {}).get('size_divisor', 1)

    @property
    def has_neck(self) -> bool:
        """Whether the model has a neck."""
        return self.model.get('neck') is not None

    @property
    def norm_of_neck(self) -> dict[str, Any]:
        """The ``norm_cfg`` of the neck."""
        if not self.has_neck:
            return {}
        neck = self.model.neck
        norm = (neck[-1] if isinstance(neck, list) else neck).norm_cfg
        # MMEngine adds the scope of a host to what its files define.
        return {key: value for key, value in norm.items() if key != '_scope_'}

    def places_of(self, key: str) -> list[Place]:
        """Where the model has settings of this name."""
        return list(_places_of(key, self.model, ()))


def find_detector(name: str | None, task: str) -> Detector:
    """Find a model by its name, or the default for a task.

    Raises:
        UserError: if there is none of that name for the task.
    """
    names = names_by_task()[task]
    name = name or names[0]
    if (its_task := task_of(name)) != task:
        known = ', '.join(names)
        raise UserError(
            f'`detector={name}` is for the task {its_task}, and this is {task}: expected one of '
            f'{known}'
        )
    rows, _ = _table()
    return Detector(name, **rows[name])


def task_of(name: str) -> str:
    """The task that a detector is for.

    Raises:
        UserError: if there is none of that name.
    """
    rows, _ = _table()
    if name not in rows:
        raise UserError(f'`detector`: {unknown_name("detector", name, rows)}')
    return rows[name]['task']


def names_by_task() -> dict[str, list[str]]:
    """The models for each task, the default first."""
    rows, defaults = _table()
    return {
        task: sorted(
            (name for name, row in rows.items() if row['task'] == task),
            key=lambda name, first=first: name != first,
        )
        for task, first in defaults.items()
    }


def _table() -> tuple[dict[str, dict], dict[str, str]]:
    table = Config.fromfile(config_root() / '_base_' / 'project' / 'detectors.py').to_dict()
    return table['detectors'], table['defaults']


def _places_of(key: str, settings: Any, path: Place) -> Iterator[Place]:
    items = settings.items() if isinstance(settings, Mapping) else enumerate(settings)
    for name, value in items:
        if name == key:
            yield (*path, name)
        elif isinstance(value, Mapping | list):
            yield from _places_of(key, value, (*path, name))
