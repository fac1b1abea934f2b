"""A resumed run takes some settings from its checkpoint, and others from the config."""

import copy
import datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from detector_runs import changed, make_runner
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.logging import HistoryBuffer
from mmengine.registry import HOOKS
from toy import evaluated, log_of, quick, toy_config, toy_iterations, train

from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.mmengine import require_safe_loading
from ptnt_mm.weights.reader.read import read_checkpoint

pytestmark = pytest.mark.slow

# MMEngine's own loading refuses its own checkpoints with today's torch.
require_safe_loading()

WARM = dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=4)
STEPS = dict(type='MultiStepLR', by_epoch=True, milestones=[1, 3], gamma=0.1)
POLY = dict(type='PolyLR', power=0.9, eta_min=0.01, begin=4, end=12, by_epoch=False)


@HOOKS.register_module()
class UsedSettings(Hook):
    """The settings of the optimizer's steps."""

    used: list[dict] = []

    def before_train(self, runner) -> None:
        def remember(optimizer, *_):
            group = optimizer.param_groups[0]
            settings = {key: value for key, value in group.items() if key != 'params'}
            self.used.append(settings)

        runner.optim_wrapper.optimizer.register_step_pre_hook(remember)


def rows(config: Config, checkpoint: Path | None = None) -> list[dict]:
    """Train or resume; return the settings of each step."""
    config.custom_hooks += [dict(type='ResumeHook'), dict(type='UsedSettings')]
    config.resume, config.load_from = checkpoint is not None, checkpoint and str(checkpoint)
    UsedSettings.used = []
    train(quick(config))
    return UsedSettings.used


def by_epochs(work_dir: Path, epochs: int = 4, **optimizer) -> Config:
    config = toy_config(work_dir, epochs)
    config.param_scheduler = [dict(WARM), dict(STEPS)]
    config.optim_wrapper.optimizer.update(optimizer)
    config.default_hooks.checkpoint.max_keep_ckpts = 9
    return config


def by_iterations(work_dir: Path, **optimizer) -> Config:
    config = toy_iterations(work_dir)
    config.param_scheduler = [dict(WARM), dict(POLY)]
    config.optim_wrapper.optimizer.update(optimizer)
    config.default_hooks.checkpoint.max_keep_ckpts = 9
    return config


@pytest.fixture(scope='module')
def run(tmp_path_factory) -> Path:
    """A finished run, to be resumed."""
    folder = tmp_path_factory.mktemp('resume')
    rows(by_epochs(folder / 'run'))
    rows(by_iterations(folder / 'run'))
    return folder / 'run'


@pytest.fixture(scope='module')
def continued(run: Path) -> list[dict]:
    """The settings of the steps after its second epoch."""
    return rows(by_epochs(run.parent / 'continued'), run / 'epoch_2.pth')


@pytest.mark.parametrize(
    ('config', 'checkpoint', 'done'),
    [(by_epochs, 'epoch_2.pth', 6), (by_iterations, 'iter_8.pth', 8)],
)
def test_changed_settings_are_used_as_if_they_had_been_there_from_the_beginning(
    tmp_path: Path, run: Path, config, checkpoint: str, done: int
):
    changed = dict(lr=0.5, weight_decay=0.3, betas=(0.8, 0.99))
    whole = rows(config(tmp_path / 'whole', **changed))
    continued = rows(config(tmp_path / 'continued', **changed), run / checkpoint)
    assert continued == whole[done:] and len(continued) == 12 - done
    assert continued[0]['initial_lr'] == 0.5 and continued[0]['betas'] == (0.8, 0.99)
    assert continued[0]['lr'] != rows(config(tmp_path / 'same'), run / checkpoint)[0]['lr']
    said = 'those of the config: the learning rate continues at'
    assert said in log_of(tmp_path / 'continued') and said not in log_of(tmp_path / 'same')


def test_a_changed_schedule_is_used(tmp_path: Path, run: Path):
    config = by_epochs(tmp_path, 6)
    config.param_scheduler[1].milestones = [5]
    assert [round(row['lr'], 6) for row in rows(config, run / 'epoch_2.pth')] == [0.1] * 9 + [
        0.01
    ] * 3


def test_other_numbers_of_schedules(tmp_path: Path, run: Path):
    """No schedule, and one more than MMEngine would resume."""
    config = by_epochs(tmp_path / 'none')
    config.param_scheduler = None
    assert {row['lr'] for row in rows(config, run / 'epoch_2.pth')} == {0.1}
    config = by_epochs(tmp_path / 'more')
    config.param_scheduler.append(
        dict(type='ConstantLR', factor=0.5, begin=2, end=9, by_epoch=True)
    )
    assert rows(config, run / 'epoch_2.pth')[0]['lr'] == pytest.approx(0.1 * 0.1 * 0.5)


def test_a_schedule_that_depends_on_metrics_cannot_change(tmp_path: Path, run: Path):
    config = by_epochs(tmp_path)
    config.param_scheduler.append(dict(type='ReduceOnPlateauLR', monitor='score', rule='greater'))
    with pytest.raises(UserError, match='a schedule that depends on metrics cannot be stepped'):
        rows(config, run / 'epoch_2.pth')


def test_a_schedule_that_depends_on_metrics_continues(tmp_path: Path):
    def config(work_dir: Path) -> Config:
        # With a best one, MMEngine saves a checkpoint again after its evaluation.
        best = dict(save_best='score', rule='greater', max_keep_ckpts=9)
        config = evaluated(toy_config(work_dir, 3), **best)
        plateau = dict(type='ReduceOnPlateauLR', monitor='score', rule='less', patience=0)
        config.param_scheduler = [dict(WARM), plateau]
        return config

    whole = rows(config(tmp_path / 'whole'))
    assert whole[-1]['lr'] < 0.1
    assert rows(config(tmp_path / 'rest'), tmp_path / 'whole' / 'epoch_2.pth') == whole[6:]
    # Its end is that of the run, which may be longer now.
    longer = config(tmp_path / 'longer')
    longer.train_cfg.max_epochs = 4
    assert rows(longer, tmp_path / 'whole' / 'epoch_2.pth')[:3] == whole[6:]


def test_a_schedule_that_keeps_a_function_continues(tmp_path: Path):
    def config(work_dir: Path) -> Config:
        cycle = dict(type='OneCycleLR', eta_max=0.1, total_steps=9, by_epoch=False)
        config = toy_config(work_dir, 3, param_scheduler=[cycle])
        config.default_hooks.checkpoint.max_keep_ckpts = 9
        return config

    whole = rows(config(tmp_path / 'whole'))
    assert rows(config(tmp_path / 'rest'), tmp_path / 'whole' / 'epoch_2.pth') == whole[6:]


@HOOKS.register_module()
class DateHook(Hook):
    """Stores what no safe reader accepts."""

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        checkpoint['meta']['date'] = datetime.date(2026, 1, 1)


def test_a_run_whose_checkpoints_could_not_be_read_stops_at_the_first(tmp_path: Path):
    config = toy_config(tmp_path, 2)
    config.custom_hooks += [dict(type='DateHook')]
    with pytest.raises(
        UserError, match='epoch_1.pth was written, .*asks for .datetime.date.*hooks'
    ):
        train(quick(config))


def test_another_optimizer(tmp_path: Path, run: Path):
    for kind in ('SGD', 'Adamax'):
        config = by_epochs(tmp_path)
        config.optim_wrapper.optimizer = dict(type=kind, lr=0.1)
        expected = (
            rf'`resume=.*epoch_2.pth`: .*not written by {kind}: it has exp_avg, .*`load_from`'
        )
        with pytest.raises(UserError, match=expected):
            rows(config, run / 'epoch_2.pth')
    # An optimizer with the same state continues with it.
    config = by_epochs(tmp_path)
    config.optim_wrapper.optimizer = dict(type='Adam', lr=0.1)
    assert len(rows(config, run / 'epoch_2.pth')) == 6


def forged(folder: Path, run: Path, *path: object, value: object = None) -> Path:
    """A checkpoint with one value changed, or removed if it is None."""
    content = torch.load(run / 'epoch_2.pth', weights_only=False)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    file = folder / 'forged.pth'
    torch.save(content, file)
    return file


GROUP = ('optimizer', 'param_groups', 0)
STATE = ('optimizer', 'state')


@pytest.mark.parametrize(
    ('path', 'value'),
    [
        (('meta', 'epoch'), None),
        (('meta', 'iter'), 10**30),
        (('meta', 'seed'), -1),
        (('message_hub',), None),
        (('optimizer',), []),
        (('optimizer', 'state'), [1]),
        (('optimizer', 'param_groups'), ['group']),
        ((*GROUP, 'params'), [3, 2, 1, 0]),
        ((*STATE, 0), [1]),
        ((*STATE, 0, 'exp_avg'), torch.zeros(5)),
        ((*STATE, 0, 'more'), 1),
        (('param_schedulers', 0), 'text'),
    ],
)
def test_forged_entries_are_refused(tmp_path: Path, run: Path, path, value):
    with pytest.raises(UserError, match=r'^`resume=.*forged.pth`: its |: it contains no') as caught:
        rows(by_epochs(tmp_path), forged(tmp_path, run, *path, value=value))
    assert '\n' not in str(caught.value) and len(str(caught.value)) < 500


def test_a_finished_run_is_trained_for_longer(tmp_path: Path, run: Path):
    with pytest.raises(UserError, match='its epoch is 4, beyond train_cfg.max_epochs=3: train for'):
        rows(by_epochs(tmp_path, 3), run / 'epoch_4.pth')


@pytest.mark.parametrize(
    ('path', 'value'),
    [
        ((*GROUP, 'lr'), 0.5),
        ((*GROUP, 'betas'), (0.9,)),
        (('param_schedulers',), None),
        (('param_schedulers', 1, '_global_step'), 10**12),
    ],
)
def test_forged_settings_are_not_used(tmp_path: Path, run: Path, continued, path, value):
    file = forged(tmp_path, run, *path, value=value)
    assert rows(by_epochs(tmp_path), file) == continued


def test_invalid_best_score_is_ignored(tmp_path: Path, run: Path):
    file = forged(tmp_path, run, 'message_hub', 'runtime_info', 'best_score', value='high')
    assert len(rows(by_epochs(tmp_path), file)) == 6


def test_resume_gives_back_all_that_was_saved(tmp_path, trained):
    path, first = trained
    runner = make_runner(tmp_path / 'run', epochs=2, resume=True, load_from=str(path))
    kept = {}

    class Look(type(first.hooks[0]).__mro__[-2]):
        def before_train(self, runner):
            kept['weights'] = copy.deepcopy(runner.model.state_dict())
            kept['log'] = copy.deepcopy(runner.message_hub.log_scalars)
            kept['momentum'] = copy.deepcopy(runner.optim_wrapper.state_dict()['state'])
            kept['epoch'] = runner.epoch

    runner.register_hook(Look(), 'VERY_LOW')
    runner.train()
    saved = read_checkpoint(path)
    assert kept['epoch'] == 1 and runner.epoch == 2
    for key, weight in saved['state_dict'].items():
        torch.testing.assert_close(kept['weights'][key].cpu(), weight, rtol=0, atol=0)
    for index, state in saved['optimizer']['state'].items():
        ours = kept['momentum'][index]['momentum_buffer'].cpu()
        torch.testing.assert_close(ours, state['momentum_buffer'], rtol=0, atol=0)
    for name, buffer in saved['message_hub']['log_scalars'].items():
        assert type(kept['log'][name]) is HistoryBuffer
        for ours, theirs in zip(kept['log'][name].data, buffer.data, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    before = first.message_hub.get_scalar('train/loss').data[0]
    np.testing.assert_array_equal(kept['log']['train/loss'].data[0], before)


def test_a_checkpoint_may_not_delete_files_elsewhere(tmp_path, trained):
    victim = tmp_path / 'thesis.txt'
    victim.write_text('years of work')

    def claim(checkpoint):
        info = checkpoint['message_hub']['runtime_info']
        info.update(best_ckpt=str(victim), best_score=-1.0, keep_ckpt_ids=['../../thesis'])

    path = changed(tmp_path / 'bad.pth', trained[0], claim)
    resumed = dict(epochs=2, resume=True, load_from=str(path))
    make_runner(tmp_path / 'run', hooks=[dict(type='ResumeHook')], **resumed).train()
    assert victim.exists()
    # Without the hook MMEngine deletes it, so the test is meaningful.
    make_runner(tmp_path / 'unguarded', **resumed).train()
    assert not victim.exists()


def test_own_best_checkpoint_is_replaced_after_resume(tmp_path):
    work_dir = tmp_path / 'run'
    make_runner(work_dir).train()
    make_runner(work_dir, epochs=2, resume=True, load_from=str(work_dir / 'epoch_1.pth')).train()
    assert [path.name for path in work_dir.glob('best_*')] == ['best_score_epoch_2.pth']
