"""Runs that are killed or run out of disk space, and their final weights.

`make soak` runs all of it, `python tests/soak.py segmenter` what is trained by iterations.
"""

import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from forked import Forked, start_server
from repository import ROOT
from torch import Tensor

from ptnt_mm.hooks.run_checkpoints import latest_checkpoint
from ptnt_mm.weights.reader.read import read_checkpoint

FAULTY = Path(__file__).with_name('faulty.py')

# A backbone of a thousandth of the cost: startup takes most of a run.
_MICRO = """
_base_.model.backbone.arch = dict(
    depths=(1, 2, 1, 1), inner_depths=(1, 2, 1, 1), outer_dims=(8, 16, 16, 8),
    inner_dims=(2, 4, 4, 2), outer_heads=(2, 4, 4, 2), inner_heads=(1, 2, 2, 1),
    pretrain_img_size=128,
)
"""

# Images of half the size cost a quarter. The third step resizes them in training, the second in
# validation.
_HALF = 'dict(type="Resize", scale=(128, 96), keep_ratio=True)'

# The demo's detector, by epochs.
SMALL = f"""
_base_ = {str(ROOT / 'configs/demo/demo_retinanet_ptnt_ti.py')!r}
{_MICRO}
model = dict(backbone=dict(drop_path_rate=0.1), test_cfg=dict(score_thr=0.0))
_base_.train_dataloader.dataset.pipeline[2] = {_HALF}
_base_.val_dataloader.dataset.pipeline[1] = {_HALF}
_base_.model.neck.in_channels = [8, 16, 16, 8]
train_cfg = dict(max_epochs=4, val_interval=2)
train_dataloader = dict(batch_size=4)
default_hooks = dict(
    logger=dict(interval=1),
    checkpoint=dict(max_keep_ckpts=1, save_best='coco/bbox_mAP', rule='greater'),
)
"""

# The demo's segmenter, by iterations: checkpoints come in the middle of a pass, too.
SMALL_MAPS = f"""
_base_ = {str(ROOT / 'configs/demo/demo_semantic_fpn_ptnt_ti.py')!r}
{_MICRO}
model = dict(data_preprocessor=dict(size=(96, 96)), backbone=dict(drop_path_rate=0.1))
_base_.train_dataloader.dataset.pipeline[2] = {_HALF}
_base_.train_dataloader.dataset.pipeline[3].crop_size = (96, 96)
_base_.val_dataloader.dataset.pipeline[1] = {_HALF}
_base_.model.neck[0].in_channels = _base_.model.neck[1].in_channels = [8, 16, 16, 8]
train_cfg = dict(max_iters=24, val_interval=12)
train_dataloader = dict(batch_size=4)
default_hooks = dict(
    logger=dict(interval=1),
    checkpoint=dict(interval=6, max_keep_ckpts=1, save_best='mIoU'),
)
"""


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        name: For tables and folders.
        config: Its settings.
        final: The last checkpoint's name.
        went_on: Text that the log contains if training continued after the first checkpoint.
    """

    name: str
    config: str
    final: str
    went_on: str


DETECTOR = Kind('detector', SMALL, 'epoch_4.pth', r'epoch [234]/')
SEGMENTER = Kind('segmenter', SMALL_MAPS, 'iter_24.pth', r'iteration  ([789]|\d\d)/')


@dataclass
class Outcome:
    """Outcomes of the runs with one kind of fault."""

    fault: str
    injected: int = 0
    runs_lost: int = 0
    checkpoints_lost: int = 0


class Soak:
    """A folder with a small data set and the run that others are compared with.

    Args:
        folder: Holds ``data/demo``.
        kind: The kind of model.
    """

    def __init__(self, folder: Path, kind: Kind = DETECTOR):
        self.folder = folder
        self.kind = kind
        self.runs = folder / f'soak-{kind.name}'
        self.runs.mkdir()
        self.config = self.runs / 'small.py'
        self.config.write_text(kind.config)
        # The moments of a run at which to kill it.
        start_server()
        start = time.monotonic()
        self.finish('reference')
        self.seconds = time.monotonic() - start
        self.weights = self.final_weights('reference')

    def kill_at_random(self, times: int, seed: int) -> Outcome:
        """Kill at random moments and resume each time, until ``count`` kills."""
        outcome, moments = self.outcome('killed at a random moment'), random.Random(seed)
        run = 0
        while outcome.injected < times:
            run += 1
            name, ended = f'random{run}', False
            while not ended and outcome.injected < times:
                process = self.start(name)
                try:
                    process.wait(moments.uniform(0.2, 1) * self.seconds)
                    ended = True
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    outcome.injected += 1
                    outcome.checkpoints_lost += self.is_lost(name)
            outcome.runs_lost += not self.continues_as_if_nothing_happened(name)
        return outcome

    def kill_while_writing(self, moment: str, nth: int) -> Outcome:
        """Kill while the nth checkpoint is written; ``faulty.py`` has the moments."""
        outcome, name = self.outcome(f'killed while writing: {moment}'), f'{moment}{nth}'
        process = self.start(name, FAULTY, moment, nth)
        outcome.injected += process.wait() == -signal.SIGKILL
        outcome.checkpoints_lost += nth > 1 and latest_checkpoint(self.runs / name) is None
        outcome.runs_lost += not self.continues_as_if_nothing_happened(name)
        return outcome

    def fill_the_disk(self) -> Outcome:
        """Train on a file system with room for one checkpoint and a half."""
        outcome, name = self.outcome('disk full'), 'full'
        (self.runs / name).mkdir()
        (self.runs / 'saved').mkdir()
        size = (self.runs / 'reference' / self.kind.final).stat().st_size
        mount = f'mount -t tmpfs -o size={int(1.5 * size) // 1024}k tmpfs {self.runs / name}'
        script = f'{mount} || exit 99; "$@"; cp -r {self.runs / name}/. {self.runs / "saved"}'
        unshare = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', script, 'sh']
        done = subprocess.run(
            [*unshare, sys.executable, *map(str, self.script(name))],
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        if done.returncode == 99:
            raise PermissionError(done.stderr)
        outcome.injected += bool(re.search('cannot be written: No space left', done.stderr))
        outcome.checkpoints_lost += self.is_lost('saved')
        outcome.runs_lost += not self.continues_as_if_nothing_happened('saved')
        return outcome

    def is_lost(self, name: str) -> bool:
        """Whether a run has written a checkpoint, but has no complete one now."""
        work_dir = self.runs / name
        logs = [re.sub(' +', ' ', log.read_text()) for log in work_dir.glob('*/*.log')]
        went_on = any(re.search(self.kind.went_on, log) for log in logs)
        return went_on and latest_checkpoint(work_dir) is None

    def continues_as_if_nothing_happened(self, name: str) -> bool:
        """Whether a run, resumed to its end, has the weights of the undisturbed one."""
        self.finish(name)
        weights = self.final_weights(name)
        return weights.keys() == self.weights.keys() and all(
            torch.equal(weights[key], self.weights[key]) for key in weights
        )

    def finish(self, name: str) -> None:
        """Train or resume to the end."""
        if self.start(name).wait() != 0:
            log = (self.runs / f'{name}.txt').read_text()
            raise RuntimeError(f'{name} does not train: {log[-2000:]}')

    def final_weights(self, name: str) -> dict[str, Tensor]:
        """The weights at the end."""
        file = self.runs / name / self.kind.final
        return read_checkpoint(file)['state_dict']

    def outcome(self, fault: str) -> Outcome:
        """An outcome without runs yet."""
        return Outcome(f'{self.kind.name} {fault}')

    def script(self, name: str, *wrapper: object) -> list[object]:
        """The command that trains, or continues an existing run, with its arguments."""
        train, work_dir = ROOT / 'tools' / 'train.py', self.runs / name
        return [*wrapper, train, self.config, '--work-dir', work_dir, '--seed', 1, '--resume']

    def start(self, name: str, *wrapper: object) -> Forked:
        """Start the command."""
        return Forked(self.script(name, *wrapper), self.folder, self.runs / f'{name}.txt')


def to_table(outcomes: list[Outcome]) -> str:
    """The outcomes as a Markdown table."""
    rows = [(o.fault, o.injected, o.runs_lost, o.checkpoints_lost) for o in outcomes]
    heading = ('fault', 'injected', 'runs lost', 'checkpoints lost'), ('---', *['---:'] * 3)
    return '\n'.join(f'| {" | ".join(map(str, row))} |' for row in (*heading, *rows))


def detector(folder: Path) -> list[Outcome]:
    """All faults, by epochs."""
    soak = Soak(folder, DETECTOR)
    outcomes = [soak.kill_at_random(20, seed=0)]
    for moment in ('half', 'before', 'after'):
        outcomes += [soak.kill_while_writing(moment, nth) for nth in (1, 2, 3)]
    return [*outcomes, soak.fill_the_disk()]


def segmenter(folder: Path) -> list[Outcome]:
    """The faults that could behave differently in training by iterations."""
    soak = Soak(folder, SEGMENTER)
    writing = [soak.kill_while_writing('half', nth) for nth in (1, 2, 3)]
    return [soak.kill_at_random(10, seed=0), *writing]


def main(names: list[str]) -> int:
    """Run the named kinds, or all, in a new folder; print the table and return the exit status."""
    suites = dict(detector=detector, segmenter=segmenter)
    with tempfile.TemporaryDirectory(prefix='soak-') as name:
        folder = Path(name)
        make = [ROOT / 'tools' / 'make_demo_data.py', folder / 'data' / 'demo']
        numbers = ['--train', '16', '--val', '4']
        subprocess.run([sys.executable, *map(str, make), *numbers], check=True)
        outcomes = [one for suite in names or suites for one in suites[suite](folder)]
    print(to_table(outcomes))
    return int(any(one.runs_lost or one.checkpoints_lost for one in outcomes))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
