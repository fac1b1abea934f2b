"""A step that ruins the weights of a detector or segmenter, in a run of ``ptnt train``."""

from pathlib import Path

import pytest
from soak import SMALL, SMALL_MAPS

from ptnt_mm.weights.fit import check_finite
from ptnt_mm.weights.reader.read import read_checkpoint

from .workplace import ROOT

RUINED = f"""
import runpy, sys, torch
from torch.optim import AdamW

step, count, last = AdamW.step, 0, int(sys.argv.pop())

def ruined_step(self, *args, **kwargs):
    global count
    step(self, *args, **kwargs)
    count += 1
    if count == last:
        for group in self.param_groups:
            for parameter in group['params']:
                parameter.data.fill_(float('nan'))

AdamW.step = ruined_step
runpy.run_path({str(ROOT / 'tools' / 'train.py')!r}, run_name='__main__')
"""
EPOCHS = (
    'train_cfg.max_epochs=2',
    'train_cfg.val_interval=1',
    'train_dataloader.dataset.indices=8',
    'val_dataloader.dataset.indices=2',
)
ITERATIONS = (
    'train_cfg.max_iters=4',
    'train_cfg.val_interval=2',
    'default_hooks.checkpoint.interval=2',
    'val_dataloader.dataset.indices=2',
)


# Every second iteration is saved; for the detector, these are epochs.
@pytest.mark.parametrize(
    ('text', 'settings', 'iteration', 'kept', 'result'),
    [
        (SMALL, EPOCHS, 4, 'epoch_1.pth', 'epoch_2.pth'),
        (SMALL_MAPS, ITERATIONS, 4, 'iter_2.pth', 'iter_4.pth'),
    ],
    ids=['detector', 'segmenter'],
)
def test_the_last_good_one_stays(workplace, text, settings, iteration, kept, result):
    run = workplace.folder / f'ruined_{Path(kept).stem}'
    config = run.with_suffix('.py')
    config.write_text(text)
    script = workplace.folder / 'ruined.py'
    script.write_text(RUINED)
    args = (config, '--work-dir', run, '--cfg-options', *settings)
    done = workplace.run(script, *args, iteration, check=False)
    assert done.returncode == 1 and 'Traceback' not in done.stdout
    error = done.stdout.strip().splitlines()[-1]
    assert error.startswith(f'error: iteration {iteration}: ')
    assert f'{run / kept} is the last complete checkpoint' in error and 'Done ' not in done.stdout
    files = sorted(run.glob('*.pth'))
    assert run / kept in files and len(files) <= 2, 'and perhaps the best'
    for file in files:
        check_finite(read_checkpoint(file)['state_dict'], str(file))
    resumed = workplace.run('train.py', *args, '--resume')
    assert 'Done ' in resumed.stdout and not (run / kept).exists()
    check_finite(read_checkpoint(run / result)['state_dict'], result)
