"""Running the commands as a user does, in a folder with a small data set."""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from forked import Forked
from micro import MICRO_ARCH
from repository import ROOT, environment

CONFIG = ROOT / 'configs/demo/demo_retinanet_ptnt_ti.py'
SEGMENTER = CONFIG.with_name('demo_semantic_fpn_ptnt_ti.py')

# Added to LEARNING: epochs of 2 iterations, saved and evaluated after each.
SHORT = (
    'train_cfg.max_epochs=2',
    'train_cfg.val_interval=1',
    'default_hooks.logger.interval=1',
    'default_hooks.checkpoint.interval=1',
    'train_dataloader.dataset.indices=4',
    'val_dataloader.dataset.indices=2',
)

# As small as it can be, and long enough to detect some objects of the training images, which are
# also the validation set. Images have half the size, which costs a quarter.
LEARNING = f"""
_base_ = {str(CONFIG)!r}
half = dict(type='Resize', scale=(128, 96), keep_ratio=True)
_base_.train_dataloader.dataset.pipeline[2] = half
_base_.val_dataloader.dataset.pipeline[1] = half
_base_.test_dataloader.dataset.pipeline[1] = half
_base_.tta_pipeline[1].transforms[0] = [half]
train_cfg = dict(max_epochs=6, val_interval=6)
optim_wrapper = dict(optimizer=dict(lr=0.005))
auto_scale_lr = dict(base_batch_size=1)
train_set = dict(ann_file='annotations/instances_train.json', data_prefix=dict(img='train/'))
train_dataloader = dict(batch_size=2, dataset=dict(indices=10))
val_dataloader = dict(dataset=dict(**train_set, indices=10))
test_dataloader = val_dataloader
val_evaluator = dict(ann_file='data/demo/annotations/instances_train.json')
test_evaluator = val_evaluator
_base_.model.backbone.arch = {MICRO_ARCH}
_base_.model.neck.in_channels = [8, 16, 16, 8]
model = dict(
    neck=dict(out_channels=32),
    bbox_head=dict(in_channels=32, feat_channels=32, stacked_convs=1),
    test_cfg=dict(score_thr=0.01),
)
default_hooks = dict(logger=dict(interval=2), checkpoint=dict(interval=6))
"""

# The same for a segmenter, in iterations.
LEARNING_MAPS = f"""
_base_ = {str(SEGMENTER)!r}
_base_.model.backbone.arch = {MICRO_ARCH}
_base_.model.neck[0].in_channels = _base_.model.neck[1].in_channels = [8, 16, 16, 8]
_base_.model.neck[1].out_channels = 32
model = dict(
    data_preprocessor=dict(size=(96, 96)),
    decode_head=dict(in_channels=[32] * 4, channels=32),
    test_cfg=dict(crop_size=(96, 96), stride=(64, 64)),
)
half = dict(type='Resize', scale=(128, 96), keep_ratio=True)
_base_.train_dataloader.dataset.pipeline[2] = half
_base_.train_dataloader.dataset.pipeline[3].crop_size = (96, 96)
_base_.val_dataloader.dataset.pipeline[1] = half
_base_.test_dataloader.dataset.pipeline[1] = half
_base_.tta_pipeline[1].transforms[0] = [
    dict(type='Resize', scale_factor=factor, keep_ratio=True) for factor in (0.5, 0.75)
]
train_cfg = dict(max_iters=40, val_interval=20)
optim_wrapper = dict(optimizer=dict(lr=0.01))
train_set = dict(data_prefix=dict(img_path='train', seg_map_path='semantic/train'))
train_dataloader = dict(batch_size=4, dataset=dict(indices=10))
val_dataloader = dict(dataset=dict(**train_set, indices=10))
test_dataloader = val_dataloader
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=4),
    dict(type='PolyLR', power=0.9, eta_min=0.0, begin=4, end=40, by_epoch=False),
]
default_hooks = dict(logger=dict(interval=2), checkpoint=dict(interval=20))
"""


def load_tool(name: str) -> ModuleType:
    """The module of a command line, to be called in the tests' own process."""
    spec = importlib.util.spec_from_file_location(f'{name}_tool', ROOT / 'tools' / f'{name}.py')
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@dataclass
class Workplace:
    """A folder with the demo data in it, in which commands are run."""

    folder: Path

    def command(self, script: str | Path, *args: object) -> list[str]:
        script = ROOT / 'tools' / script if isinstance(script, str) else script
        return [sys.executable, str(script), *map(str, args)]

    def run(self, script: str | Path, *args: object, check: bool = True, **environment: str):
        """Run a tool to its end; stdout and stderr come together in ``stdout``."""
        _, *words = self.command(script, *args)
        with tempfile.NamedTemporaryFile('r') as output:
            status = Forked(words, self.folder, Path(output.name), **environment).wait()
            done = subprocess.CompletedProcess(words, status, output.read())
        assert not check or done.returncode == 0, done.stdout
        return done

    def stop_in_second_epoch(self, signal_number: int, *args: object) -> str:
        """Train until the second epoch's first iteration was logged, then send a signal."""
        _, *words = self.command('train.py', *args)
        with tempfile.NamedTemporaryFile('r') as output:
            process, text = Forked(words, self.folder, Path(output.name)), ''
            while '\nepoch 2/' not in text and process.is_alive():
                time.sleep(0.05)
                text += output.read()
            process.send_signal(signal_number)
            process.wait(60)
            return text + output.read()

    def environment(self, **more: str) -> dict[str, str]:
        # Another test runs in parallel: with one thread each, they do not wait for each other.
        return environment(**{'OMP_NUM_THREADS': '1', 'OMP_WAIT_POLICY': 'passive', **more})


def figures(output: str) -> list[float]:
    """AP and AP50 of boxes in the last evaluation that an output shows."""
    return [_last(output, name) for name in ('AP', 'AP50')]


def ious(output: str) -> list[float]:
    """Pixel accuracy and mIoU of the last evaluation that an output shows."""
    return [_last(output, name) for name in ('pixel accuracy', 'mIoU')]


def _last(output: str, name: str) -> float:
    return float(re.findall(rf'(?<!best )\b{name} +(\d\.\d+)', output)[-1])


def train_lines(run: Path) -> list[dict]:
    """The scalars of every training iteration of a run, in the order they were logged."""
    files = sorted(run.glob('*/vis_data/scalars.json'))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [row for row in rows if 'loss' in row]


def options(*more: str) -> Sequence[str]:
    return ('--cfg-options', *SHORT, *more)


@dataclass
class Training:
    """The output of a finished run, and the paths of its files."""

    output: str
    config: Path
    run: Path

    @property
    def checkpoint(self) -> Path:
        """The last one."""
        return self.run / Path((self.run / 'last_checkpoint').read_text()).name
