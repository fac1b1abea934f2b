"""What a config means: its model, its data, the length of its training, and where it starts from.

Settings may be missing, None, or in one of several forms. Only this file knows them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import DATASETS

from ptnt_mm.models.backbone import Backbone
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import is_number
from ptnt_mm.weights.pretrained import pretrained_init
from ptnt_mm.workbench.config.hosts import HOSTS, Host
from ptnt_mm.workbench.config.recognisers import how_to_get
from ptnt_mm.workbench.config.registered import arguments_of, classes_named
from ptnt_mm.workbench.config.settings import as_list, dicts_within, scope_of, type_name

SPLITS = ('train', 'val', 'test')


class ConfigView:
    """What a config means.

    Everything but the scope is read anew on each use: a run rewrites and reads its config through
    one view, and a wrong setting raises an error only where it is used. Settings that are missing
    or None are empty mappings here.

    Args:
        config: A config, complete or not.

    Attributes:
        train: What it does with the training data; ``val`` and ``test`` likewise.
    """

    def __init__(self, config: Config):
        self.config = config
        self.train, self.val, self.test = (Split(config, split, self.scope) for split in SPLITS)

    @property
    def scope(self) -> str:
        """The scope that its types are looked up in."""
        return scope_of(self.config)

    @property
    def host(self) -> Host | None:
        """The library of that scope; None for others than our hosts."""
        return HOSTS.get(self.scope)

    @property
    def name(self) -> str:
        """Its file, for messages."""
        return self.config.filename or 'the config'

    def split(self, name: str) -> 'Split':
        """``train``, ``val`` or ``test``, by name."""
        return {split.name: split for split in (self.train, self.val, self.test)}[name]

    @property
    def has_test_images(self) -> bool:
        """Whether images are tested that are not those of validation."""
        return bool(self.test.data_sets) and self.test.sources != self.val.sources

    def require_files(self, splits: Iterable[str]) -> None:
        """Raise a UserError if annotation files or image folders of some splits are missing.

        The message names the first, the expected layout, and the page that explains how to get it.
        """
        expected = dict.fromkeys(path for split in splits for path in self.split(split).files)
        missing = [path for path in expected if not path.exists()]
        if missing:
            lines = [f'    {"missing" if p in missing else "found  "}  {p}' for p in expected]
            where = '' if missing[0].is_absolute() else f', relative to {Path.cwd()}'
            data_sets = (data_set for split in splits for data_set in self.split(split).data_sets)
            roots = {root for data_set in data_sets if (root := data_set.path('.')) is not None}
            elsewhere = (
                f'If these are in another folder, pass `data_root=FOLDER`, or change the path in '
                f'{self.name}. '
            ) * (not all(root.exists() for root in roots))
            raise UserError(
                f'{missing[0]} does not exist. The config expects{where}:\n'
                + '\n'.join(lines)
                + f'\n{elsewhere}{how_to_get(missing[0])}'
            )

    # The model

    @property
    def model(self) -> Mapping:
        """The settings of its model."""
        return _mapping(self.config, 'model')

    @property
    def backbone(self) -> Mapping:
        """The settings of its model's backbone; with adapters, of the network inside."""
        backbone = self._outer_backbone
        return _mapping(backbone, 'module') if self.has_adapters else backbone

    @property
    def _outer_backbone(self) -> Mapping:
        """The backbone, which semi-supervised detectors and trackers have in a detector."""
        return _mapping(self.model, 'backbone') or _mapping(
            _mapping(self.model, 'detector'), 'backbone'
        )

    @property
    def has_adapters(self) -> bool:
        """Whether the backbone is in mmpretrain's LoRAModel, which saves only its adapters."""
        return type_name(self._outer_backbone) == 'LoRAModel'

    @property
    def is_of_family(self) -> bool:
        """Whether the backbone is one of this package; mmpretrain has a different TNT."""
        classes = classes_named(self.backbone.get('type'), self.scope)
        return any(isinstance(cls, type) and issubclass(cls, Backbone) for cls in classes)

    @property
    def has_batch_norm(self) -> bool:
        """Whether the backbone is the one of the family with BatchNorm: it takes norm_eval."""
        return self.is_of_family and all(
            'norm_eval' in arguments_of(cls).parameters
            for cls in classes_named(self.backbone.get('type'), self.scope)
        )

    @property
    def norm_cfg(self) -> Mapping:
        """The settings of the backbone's norms."""
        return _mapping(self.backbone, 'norm_cfg')

    @property
    def preprocessor(self) -> Mapping:
        """The settings of the data preprocessor; configs of mmpretrain have it at their top."""
        found = self.model.get('data_preprocessor') or _mapping(self.config, 'data_preprocessor')
        # Of several branches, as in semi-supervised training, all have the same one.
        return _mapping(found, 'data_preprocessor') or found

    @property
    def test_cfg(self) -> Mapping:
        """The settings of its model's post-processing."""
        return _mapping(self.model, 'test_cfg')

    @property
    def load_from(self) -> str | None:
        """The file or address of a whole model to start from."""
        return self.config.get('load_from') or None

    @property
    def starting_weights(self) -> str | None:
        """The file or address that training starts from, or None for random initialisation.

        Raises:
            CheckpointError: if ``init_cfg`` is of type Pretrained but has no file.
        """
        if self.load_from:
            return self.load_from
        init = pretrained_init(self.backbone.get('init_cfg'))
        if init is not None:
            return str(init['checkpoint'])
        return next((str(owner['pretrained']) for owner in self.settings_with_pretrained), None)

    @property
    def settings_with_pretrained(self) -> list[Mapping]:
        """Those that name weights in the older way, as mmseg's models do."""
        owners = (self.model, self.backbone)
        return [owner for owner in owners if isinstance(owner.get('pretrained'), str)]

    # The training

    @property
    def length(self) -> 'Length':
        """The length of training."""
        loop = self.train.loop
        by_epoch = 'max_epochs' in loop or bool(loop.get('by_epoch'))
        end = loop.get('max_epochs' if by_epoch else 'max_iters')
        return Length(by_epoch, end if is_number(end) and end > 0 else float('inf'))

    @property
    def optimizer(self) -> Mapping:
        """The settings of the optimizer."""
        return _mapping(self.optim_wrapper, 'optimizer')

    @property
    def optim_wrapper(self) -> Mapping:
        """The settings around those of the optimizer: ``paramwise_cfg``, ``clip_grad``."""
        return _mapping(self.config, 'optim_wrapper')

    @property
    def paramwise(self) -> Mapping:
        """What single parameters have instead of the optimizer's settings."""
        return _mapping(self.optim_wrapper, 'paramwise_cfg')

    @property
    def accumulated_steps(self) -> int:
        """The number of iterations whose gradients are summed up."""
        return self.optim_wrapper.get('accumulative_counts', 1)

    @property
    def auto_scale_lr(self) -> Mapping:
        """The batch that the learning rate is for, and whether it is scaled."""
        return _mapping(self.config, 'auto_scale_lr')

    @property
    def schedulers(self) -> list[Mapping]:
        """The settings of the schedulers of parameters: a list, just one, or some by optimizer."""
        found = self.config.get('param_scheduler') or []
        if isinstance(found, Mapping) and 'type' not in found:
            several = [item for part in found.values() for item in as_list(part)]
            found = several if all(isinstance(item, Mapping) for item in several) else found
        return as_list(found)

    @property
    def randomness(self) -> Mapping:
        """The seed, and whether operations are deterministic."""
        return _mapping(self.config, 'randomness')

    @property
    def default_hooks(self) -> Mapping:
        """The settings that replace those of MMEngine's own hooks, by name."""
        return _mapping(self.config, 'default_hooks')

    def default_hook(self, name: str) -> Mapping:
        """The settings of one of MMEngine's own hooks, as far as the config has any."""
        return _mapping(self.default_hooks, name)

    @property
    def custom_hooks(self) -> list[Mapping]:
        """The settings of all other hooks."""
        return list(self.config.get('custom_hooks') or [])

    @property
    def left_out(self) -> set[str]:
        """The names of the safeguards and checks that ``safeguards=dict(NAME=None)`` leaves out."""
        named = self.config.get('safeguards')
        found = named.items() if isinstance(named, Mapping) else ()
        return {name for name, value in found if value is None}


class Split:
    """What a config does with its data for training, for validation or for testing.

    Args:
        config: The config.
        name: 'train', 'val' or 'test'.
        scope: The scope that types are looked up in.
    """

    def __init__(self, config: Config, name: str, scope: str):
        self.name = name
        self._config = config
        self._scope = scope

    @property
    def loader(self) -> Mapping:
        """The settings of the data loader."""
        return _mapping(self._config, f'{self.name}_dataloader')

    @property
    def dataset(self) -> Mapping:
        """The settings of its data set, or of the outermost wrapper."""
        return _mapping(self.loader, 'dataset')

    @property
    def loop(self) -> Mapping:
        """The settings of the loop: ``train_cfg``, ``val_cfg`` or ``test_cfg``."""
        return _mapping(self._config, f'{self.name}_cfg')

    @property
    def batch_size(self) -> int:
        """The number of images that a process loads at once."""
        return self.loader.get('batch_size', 1)

    @property
    def data_sets(self) -> list['DataSet']:
        """The data sets: one, or all that are joined."""
        return list(unwrapped(self.dataset, self._scope))

    @property
    def pipeline(self) -> tuple[dict, ...]:
        """The transforms of the first data set's images; empty without any data set."""
        return next((data_set.pipeline for data_set in self.data_sets), ())

    @property
    def evaluators(self) -> list[Mapping]:
        """The metrics, also those inside an evaluator such as MultiDatasetsEvaluator."""
        found = self._config.get(f'{self.name}_evaluator') or []
        found = found.get('metrics', found) if isinstance(found, Mapping) else found
        return as_list(found)

    @property
    def separate_evaluator(self) -> Mapping | None:
        """The evaluator that combines metrics in its own way; None for MMEngine's."""
        found = self._config.get(f'{self.name}_evaluator')
        is_own = isinstance(found, Mapping) and 'metrics' in found
        return found if is_own and type_name(found) not in ('', 'Evaluator') else None

    @property
    def is_evaluated(self) -> bool:
        """Whether there are a data loader and an evaluator."""
        return bool(self.loader and self._config.get(f'{self.name}_evaluator'))

    @property
    def is_measured(self) -> bool:
        """Whether predictions are evaluated, and not only written to a file."""
        return any(not evaluator.get('format_only') for evaluator in self.evaluators)

    @property
    def sources(self) -> list[dict]:
        """The settings of its data sets, without what is done with the images."""
        left_out = ('pipeline', 'test_mode')
        return [
            {key: value for key, value in data_set.settings.items() if key not in left_out}
            for data_set in self.data_sets
        ]

    @property
    def files(self) -> list[Path]:
        """The annotation files and image folders, without duplicates."""
        paths = [path for data_set in self.data_sets for path in data_set.paths()]
        named = (local_path(evaluator.get('ann_file')) for evaluator in self.evaluators)
        return list(dict.fromkeys((*paths, *(path for path in named if path is not None))))

    @property
    def metainfo(self) -> dict:
        """The metainfo of the first data set: in its settings, otherwise of its class."""
        first = self.data_sets[0]
        known = {**getattr(first.cls, 'METAINFO', {}), **first.metainfo}
        stated = first.stated_classes
        return known if stated is None else known | dict(classes=stated)


@dataclass(frozen=True)
class DataSet:
    """A data set of a config, unwrapped from RepeatDataset, ConcatDataset and the like.

    Attributes:
        settings: Settings of the innermost data set.
        pipeline: The transforms of its images, those of wrappers last.
        scope: The scope that its type is looked up in.
    """

    settings: dict
    pipeline: tuple[dict, ...]
    scope: str

    @property
    def cls(self) -> type | None:
        """Its class; None if it is not registered."""
        kind = self.settings.get('type')
        if not isinstance(kind, str):
            return kind
        with DATASETS.switch_scope_and_registry(self.scope) as registry:
            return registry.get(kind)

    def path(self, name: str | None) -> Path | None:
        """Path of a file or folder of the data set; None if it is not set, or remote."""
        return local_path(name, self.settings.get('data_root') or '')

    @property
    def prefixes(self) -> Mapping:
        """The folders of its images and masks, relative to its root; mmpretrain has just one."""
        named = self.settings.get('data_prefix')
        return dict(img_path=named) if isinstance(named, str) else named or {}

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
        """The annotation file and the folders of images and masks that are set, local and read."""
        prefixes = dict(self.prefixes)
        steps = (step for _, step in dicts_within(self.pipeline, 'pipeline'))
        if not any(step.get('with_seg', 'Panoptic' in type_name(step)) for step in steps):
            # mmdet's configs for instances inherit that of their panoptic ones.
            prefixes.pop('seg', None)
        root = '.' if self.settings.get('data_root') else None  # an empty prefix is the root itself
        for name in (self.settings.get('ann_file'), *(part or root for part in prefixes.values())):
            if (path := self.path(name)) is not None:
                yield path


@dataclass(frozen=True)
class Length:
    """The length of training.

    Attributes:
        by_epoch: Whether its loop counts epochs, and not iterations.
        end: The number of epochs or iterations; infinite if it is not in the config.
    """

    by_epoch: bool
    end: float

    @property
    def text(self) -> str:
        """The end as text."""
        unit = 'epoch' if self.by_epoch else 'iteration'
        return f'{self.end:g} {unit}' + 's' * (self.end != 1)


def unwrapped(settings: Mapping, scope: str, pipeline: tuple[dict, ...] = ()) -> Iterator[DataSet]:
    """Yield the data set itself, the one it wraps, or all that it joins.

    Args:
        settings: Settings of a data set or a wrapper.
        scope: The scope that types are looked up in.
        pipeline: The transforms of wrappers around it, which come after its own.
    """
    own = settings.get('pipeline')
    # Anything else is an error that ptnt check reports.
    pipeline = (*own, *pipeline) if isinstance(own, (list, tuple)) else pipeline
    inner = [settings['dataset']] if 'dataset' in settings else settings.get('datasets', ())
    if not inner and settings:
        yield DataSet(settings, pipeline, scope)
    for part in inner:
        yield from unwrapped(part, scope, pipeline)


def local_path(name: object, root: str = '') -> Path | None:
    """Path of a file or folder in ``root``; None if it is not set, or remote."""
    if not isinstance(name, str) or not name or '://' in name or '://' in root:
        return None
    return Path(root) / name


def _mapping(settings: Mapping, key: str) -> Mapping:
    """The settings under a key, empty if it is missing or None."""
    return settings.get(key) or {}
