"""The data sets of a config, each once, with the class names that they are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from mmengine.config import Config
from mmengine.registry import DATASETS

from ptnt_mm.engine.data_files import DataSet, data_sets
from ptnt_mm.utils.errors import UserError, unknown_name
from ptnt_mm.utils.findings import Finding, error

# What names the data and gives it a meaning, whatever the host.
_OF_EVERY_HOST = ('type', 'data_root', 'ann_file', 'data_prefix', 'metainfo')


@dataclass(frozen=True)
class Data:
    """A data set and the classes that it is asked for.

    Attributes:
        splits: Which splits use it: 'train', 'val', 'test'.
        data_set: Its settings, and the pipeline of the first split.
        pipelines: Those of all splits that use it.
        cls: Its class, of the host library or registered there.
        stated: The class names as the config states them, of whatever kind; None if it does not.
        classes: The class names.
    """

    splits: tuple[str, ...]
    data_set: DataSet
    pipelines: dict[str, tuple[dict, ...]]
    cls: type
    stated: object
    classes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The splits, for a sentence."""
        return ' and '.join(self.splits)

    @property
    def known_to_heads(self) -> tuple[str, ...]:
        """The class names that heads tell apart."""
        return self.classes

    @property
    def trains(self) -> bool:
        """Whether a model learns from it."""
        return 'train' in self.splits


SomeData = TypeVar('SomeData', bound=Data)


def described(
    kind: type[SomeData], config: Config, splits: tuple[str, ...], keys: tuple[str, ...]
) -> tuple[list[SomeData], list[Finding]]:
    """Describe the data sets of a config; those of several splits that are the same once.

    Args:
        kind: What the host describes them as; its other fields have defaults.
        config: The config; its host library is imported.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.
        keys: Settings that make two data sets of the host different ones.

    Returns:
        The data sets, and an error for each whose class is not there.
    """
    found: dict[tuple, SomeData] = {}
    findings = []
    for split in splits:
        for data_set in data_sets(config, split):
            settings = data_set.settings
            # Whatever their pipelines; but what is trained on is never one with what is not.
            values = (repr(settings.get(key)) for key in (*_OF_EVERY_HOST, *keys))
            identity = (split == 'train', *values)
            if identity not in found:
                try:
                    cls = _class_of(config, settings)
                except UserError as err:
                    findings.append(error(split, str(err)))
                    continue
                pipelines = {split: data_set.pipeline}
                names = _class_names(cls, settings)
                found[identity] = kind((split,), data_set, pipelines, cls, *names)
            elif split not in found[identity].splits:
                known = found[identity]
                pipelines = known.pipelines | {split: data_set.pipeline}
                splits_of_it = (*known.splits, split)
                found[identity] = replace(known, splits=splits_of_it, pipelines=pipelines)
    return list(found.values()), findings


def _class_of(config: Config, settings: Mapping) -> type:
    """The class of a data set.

    Raises:
        UserError: if there is none of that name.
    """
    kind = settings.get('type')
    if isinstance(kind, type):
        return kind
    scope = config.get('default_scope') or 'mmengine'
    with DATASETS.switch_scope_and_registry(scope) as registry:
        cls = registry.get(kind) if isinstance(kind, str) else None
        if cls is None:
            raise UserError(unknown_name('type', kind, sorted(registry.module_dict)))
    return cls


def _class_names(cls: type, settings: Mapping) -> tuple[object, tuple[str, ...]]:
    """The class names as a config states them, and those that count: its own or its class's."""
    stated = (settings.get('metainfo') or {}).get('classes')
    if isinstance(stated, str) and Path(stated).is_file():
        stated = Path(stated).read_text(encoding='utf-8').splitlines()
    default = getattr(cls, 'METAINFO', {}).get('classes', ())
    return stated, as_names(default if stated is None else stated)


def as_names(stated: object) -> tuple[str, ...]:
    """Class names as a tuple, a single one for a text that should have been one."""
    if isinstance(stated, str):
        return (stated,)
    return tuple(map(str, stated)) if isinstance(stated, (list, tuple)) else ()
