"""A copy of the demo set, changed by tests, and the findings of the checks."""

import copy
import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from micro import SHALLOW_ARCH
from mmengine.config import Config, ConfigDict
from PIL import Image

from ptnt_mm.utils.findings import Finding, Severity
from ptnt_mm.workbench.check.inspection import Inspection
from ptnt_mm.workbench.config.read import apply_options, read_config
from ptnt_mm.workbench.config.view import ConfigView

SPLITS = ('train', 'val', 'test')
TRAIN_SET = 'train_dataloader.dataset.'
POSTSCRIPT = b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n'
NOT_COMPLETED = 'this check could not be completed'


class Partial(Inspection):
    """Runs the thorough half of the chosen subjects alone, and 'model' only if one needs it.

    To build the model in every test would take most of the suite's time.
    """

    chosen: tuple[str, ...] = ()

    def run(self, subject: str, *quick: Iterable[Finding], thorough: Iterable[Finding] = ()):
        if subject in self.chosen:
            super().run(subject, *quick, thorough=thorough)
        elif subject != 'model' or {'heads', 'weights', 'trial'} & {*self.chosen}:
            super().run(subject, *quick)

    def check_steps(self):
        if 'trial' in self.chosen:
            super().check_steps()


@dataclass
class Demo:
    """A demo set in a folder, and the settings of the config that reads it."""

    folder: Path
    name: str = 'demo_retinanet_ptnt_ti'
    options: dict[str, Any] = field(default_factory=dict)

    def file(self, split: str) -> Path:
        return self.folder / 'annotations' / f'instances_{split}.json'

    def image(self, split: str, number: int) -> Path:
        return self.folder / split / f'{number:06d}.jpg'

    def edit(self, split: str, change: Callable[[dict], None]) -> None:
        """Change the content of an annotation file."""
        content = json.loads(self.file(split).read_text())
        change(content)
        self.file(split).write_text(json.dumps(content))

    def edit_both(self, change: Callable[[dict], None]) -> None:
        for split in ('train', 'val'):
            self.edit(split, change)

    def set(self, **options: Any) -> None:
        """Change the settings of the training data set."""
        self.options |= {TRAIN_SET + key: value for key, value in options.items()}

    def settings(self) -> dict[str, Any]:
        """All --cfg-options."""
        roots = {f'{s}_dataloader.dataset.data_root': f'{self.folder}/' for s in SPLITS}
        files = {f'{s}_evaluator.ann_file': str(self.file('val')) for s in ('val', 'test')}
        # A warm-up for 16 images.
        return {**roots, **files, 'param_scheduler.0.end': 10, **self.options}

    def config(self) -> Config:
        config = copy.deepcopy(_read(self.name))
        apply_options(config, self.settings())
        return config

    def view(self) -> ConfigView:
        return ConfigView(self.config())

    def findings(self, *thorough: str, gpus: int = 1) -> list[Finding]:
        """Findings of the quick checks, and of the thorough ones for some subjects."""
        inspection = Partial(self.view(), SPLITS, gpus)
        inspection.chosen = thorough
        inspection.check_all()
        return inspection.findings


@dataclass
class MaskDemo(Demo):
    """The same with the semantic maps, for a segmenter."""

    name: str = 'demo_semantic_fpn_ptnt_ti'

    def mask(self, split: str, number: int) -> Path:
        return self.folder / 'semantic' / split / f'{number:06d}.png'

    def masks(self, split: str) -> list[Path]:
        return sorted((self.folder / 'semantic' / split).iterdir())

    def redraw(self, files: list[Path], change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change the indices of masks."""
        for file in files:
            Image.fromarray(change(np.array(Image.open(file)))).save(file)

    def set_everywhere(self, **options: Any) -> None:
        """Set the same for the data sets of all splits."""
        for split in SPLITS:
            self.options |= {f'{split}_dataloader.dataset.{key}': options[key] for key in options}

    def settings(self) -> dict[str, Any]:
        roots = {f'{split}_dataloader.dataset.data_root': f'{self.folder}/' for split in SPLITS}
        return {**roots, **self.options}


@functools.cache
def _read(name: str) -> Config:
    """Read a config once, as its bases are searched for in mmdet each time; use few blocks."""
    config = read_config(name)
    if config.model.backbone.arch == 'tiny':
        config.model.backbone.arch = ConfigDict(SHALLOW_ARCH)
    return config


def counted(findings: list[Finding]) -> list[Finding]:
    """The errors and warnings."""
    return [one for one in findings if one.severity in (Severity.ERROR, Severity.WARNING)]


def assert_one_names(findings: list[Finding], severity: Severity, where: str, value: str) -> None:
    """Check that a finding about ``where``, or a path that ends like it, names a value."""
    assert any(
        one.severity is severity
        and one.where.endswith(where)
        and value in f'{one.what} {one.advice}'
        for one in findings
    ), findings
    assert not any(NOT_COMPLETED in one.what for one in findings)


Plant = Callable[[Demo], object]
"""Changes a copy of the demo set, or its settings."""


def all_of(*plants: Plant) -> Plant:
    return lambda demo: [plant(demo) for plant in plants]


def own(**options: object) -> Plant:
    """Change the settings of the training data set."""
    return lambda demo: demo.set(**options)


def settings(settings: dict) -> Plant:
    """Give --cfg-options."""
    return lambda demo: demo.options.update(settings)


def changed(split: str, kind: str, **changes: object) -> Plant:
    """Change the second entry of a kind in an annotation file."""
    return lambda demo: demo.edit(split, lambda content: content[kind][1].update(changes))


def listed(*lines: str, ending: str = '\n') -> Plant:
    """Train on the images that a list names."""

    def plant(demo: Demo) -> None:
        (demo.folder / 'train.txt').write_bytes(ending.join(lines).encode())
        demo.set(ann_file='train.txt')

    return plant


def file_of(change: Callable[[Path], object], split: str = 'train', number: int = 3) -> Plant:
    """Change an image's file."""
    return lambda demo: change(demo.image(split, number))


def converted(mode: str, form: str) -> Callable[[Path], None]:
    return lambda file: Image.open(file).convert(mode).save(file, format=form)


def with_exif(orientation: int) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.open(file).save(file, exif=exif)

    return change


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def dangling(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.with_name('gone.jpg'))
