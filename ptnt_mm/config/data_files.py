"""Find the data sets of a config, and check that their files exist."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import DATASETS

from ptnt_mm.config.settings import kind_of
from ptnt_mm.explain.causes import how_to_get
from ptnt_mm.utils.errors import UserError


@dataclass(frozen=True)
class DataSet:
    """A data set of a config, unwrapped from RepeatDataset, ConcatDataset and the like.

    Attributes:
        settings: Settings of the innermost data set.
        pipeline: The transforms of its images, those of wrappers last.
    """

    settings: dict
    pipeline: tuple[dict, ...]

    def path(self, name: str | None) -> Path | None:
        """Path of a file or folder of the data set; None if it is not set, or remote."""
        return local_path(name, self.settings.get('data_root') or '')

    @property
    def prefixes(self) -> dict[str, str]:
        """The folders of its images and masks, relative to its root; mmpretrain has just one."""
        named = self.settings.get('data_prefix') or {}
        return dict(img_path=named) if isinstance(named, str) else named

    @property
    def metainfo(self) -> Mapping:
        """Its ``metainfo``, empty if it is missing or not a dict."""
        stated = self.settings.get('metainfo')
        return stated if isinstance(stated, Mapping) else {}

    @property
    def stated_classes(self) -> object:
        """The class names in its settings, of any type, or the lines of the file that they name."""
        # mmpretrain accepts both.
        own = self.metainfo.get('classes', self.settings.get('classes'))
        if isinstance(own, str) and Path(own).is_file():
            return Path(own).read_text(encoding='utf-8').splitlines()
        return own

    def paths(self) -> Iterator[Path]:
        """The annotation file and the folders of images and masks that are set and local."""
        for name in (self.settings.get('ann_file'), *self.prefixes.values()):
            if (path := self.path(name)) is not None:
                yield path


def local_path(name: object, root: str = '') -> Path | None:
    """Path of a file or folder in ``root``; None if it is not set, or remote."""
    if not isinstance(name, str) or not name or '://' in name or '://' in root:
        return None
    return Path(root) / name


def class_of(settings: Mapping, scope: str) -> type | None:
    """The class of a data set's settings; None if it is not registered in ``scope``."""
    kind = settings.get('type')
    if not isinstance(kind, str):
        return kind
    with DATASETS.switch_scope_and_registry(scope) as registry:
        return registry.get(kind)


def data_sets(config: Config, split: str) -> Iterator[DataSet]:
    """The data sets of a split, 'train', 'val' or 'test': one, or all that are joined."""
    loader = config.get(f'{split}_dataloader') or {}
    yield from unwrapped(loader.get('dataset') or {})


def unwrapped(settings: dict, pipeline: tuple[dict, ...] = ()) -> Iterator[DataSet]:
    """Yield the data set itself, the one it wraps, or all that it joins.

    Args:
        settings: Settings of a data set or a wrapper.
        pipeline: The transforms of wrappers around it, which come after its own.
    """
    own = settings.get('pipeline')
    # Anything else is an error that ptnt check reports.
    pipeline = (*own, *pipeline) if isinstance(own, (list, tuple)) else pipeline
    inner = [settings['dataset']] if 'dataset' in settings else settings.get('datasets', ())
    if not inner and settings:
        yield DataSet(settings, pipeline)
    for part in inner:
        yield from unwrapped(part, pipeline)


def evaluators(config: Config, split: str) -> list[dict]:
    """The metrics of a split, also those inside an evaluator such as MultiDatasetsEvaluator."""
    found = config.get(f'{split}_evaluator') or []
    found = found.get('metrics', found) if isinstance(found, Mapping) else found
    return list(found) if isinstance(found, (list, tuple)) else [found]


def separate_evaluator(config: Config, split: str) -> Mapping | None:
    """The evaluator of a split that combines metrics in its own way; None for MMEngine's."""
    found = config.get(f'{split}_evaluator')
    is_own = isinstance(found, Mapping) and 'metrics' in found
    return found if is_own and kind_of(found) not in ('', 'Evaluator') else None


def expected_files(config: Config, split: str) -> list[Path]:
    """The annotation files and image folders of a split, without duplicates."""
    paths = [path for data_set in data_sets(config, split) for path in data_set.paths()]
    for evaluator in evaluators(config, split):
        if (path := local_path(evaluator.get('ann_file'))) is not None:
            paths.append(path)
    return list(dict.fromkeys(paths))


def check_data_files(config: Config, splits: tuple[str, ...]) -> None:
    """Raise a UserError if annotation files or image folders of some splits are missing.

    The message names the first, the expected layout, and the page that explains how to get it.
    """
    expected = dict.fromkeys(path for split in splits for path in expected_files(config, split))
    missing = [path for path in expected if not path.exists()]
    if not missing:
        return
    layout = '\n'.join(f'    {"missing" if p in missing else "found  "}  {p}' for p in expected)
    raise UserError(
        f'{missing[0]} does not exist. The config expects, relative to {Path.cwd()}:\n{layout}\n'
        f'{how_to_get(missing[0])}'
    )
