"""NaN and infinity stop a run and never replace a good checkpoint."""

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from forked import start_server
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.optim.scheduler.param_scheduler import _ParamScheduler
from mmengine.registry import HOOKS, MODELS, PARAM_SCHEDULERS
from torch import Tensor
from torch.optim import AdamW
from toy import ToyModel, evaluated, names, quick, toy_config, toy_iterations, train

from ptnt_mm.hooks import StopAtNaNHook
from ptnt_mm.hooks.run_checkpoints import latest_checkpoint
from ptnt_mm.utils.errors import UserError

pytestmark = pytest.mark.slow

EMA = dict(type='EMAHook', update_buffers=True)


def ruin(monkeypatch, iteration: int, spoil) -> None:
    """Call ``spoil(optimizer)`` after one step of the optimizer."""
    step, count = AdamW.step, 0

    def ruined_step(self, *args):
        nonlocal count
        step(self, *args)
        count += 1
        if count == iteration:
            with torch.no_grad():
                spoil(self)

    monkeypatch.setattr(AdamW, 'step', ruined_step)


def a_parameter(optimizer: AdamW) -> None:
    optimizer.param_groups[0]['params'][1][0] = float('nan')


def its_moment(optimizer: AdamW) -> None:
    optimizer.state[optimizer.param_groups[0]['params'][1]]['exp_avg_sq'][0] = float('inf')


def continues(config: Config, checkpoint: Path) -> dict[str, Tensor]:
    """Resume, and train to the end."""
    config.resume, config.load_from = True, str(checkpoint)
    return train(config)


@pytest.mark.parametrize('bad', [float('nan'), float('inf')])
def test_a_bad_loss_stops_at_once_and_names_the_images(tmp_path: Path, monkeypatch, bad: float):
    forward, calls = ToyModel.forward, []

    def spoilt(self, inputs, data_samples, mode):
        calls.append([sample.img_path for sample in data_samples])
        found = forward(self, inputs, data_samples, mode)
        return {'loss': found['loss'] * bad} if len(calls) == 5 else found

    monkeypatch.setattr(ToyModel, 'forward', spoilt)
    with pytest.raises(UserError) as caught:
        train(toy_config(tmp_path))
    message = str(caught.value)
    assert f'epoch 2, iteration 5: loss is {bad}' in message
    assert all(name in message for name in calls[4]) and '`resume=auto`' in message
    assert len(calls) == 5
    (checkpoint,) = tmp_path.glob('*.pth')
    weights = torch.load(checkpoint, weights_only=False)['state_dict']
    assert checkpoint.name == 'epoch_1.pth'
    assert all(weight.isfinite().all() for weight in weights.values())


def test_infinite_gradients_alone_do_not_stop(tmp_path: Path, monkeypatch):
    """float16's loss scaling produces them regularly, and skips the step."""
    left_out, step = [], AdamW.step

    def scaled_step(self, *args):
        gradients = [p.grad for group in self.param_groups for p in group['params']]
        if len(left_out) < 2:
            gradients[0].fill_(float('inf'))
        if all(gradient.isfinite().all() for gradient in gradients):
            step(self, *args)
        else:
            left_out.append(True)

    monkeypatch.setattr(AdamW, 'step', scaled_step)
    config = toy_config(tmp_path, epochs=1)
    train(config)
    assert len(left_out) == 2 and (tmp_path / 'epoch_1.pth').exists()


def test_a_batch_of_several_branches_has_no_names():
    """As in semi-supervised training."""
    batch = dict(inputs=dict(sup=[]), data_samples=dict(sup=[]))
    with pytest.raises(UserError, match='The batch was without names'):
        StopAtNaNHook().after_train_iter(
            SimpleNamespace(epoch=0, iter=0, train_loop=None),
            0,
            batch,
            dict(loss=torch.tensor(float('nan'))),
        )


def test_iterations_are_not_counted_by_epochs(tmp_path: Path, monkeypatch):
    forward = ToyModel.forward

    def spoilt(self, inputs, data_samples, mode):
        return {'loss': forward(self, inputs, data_samples, mode)['loss'] * float('nan')}

    monkeypatch.setattr(ToyModel, 'forward', spoilt)
    with pytest.raises(UserError, match=r'^iteration 1: loss is nan. The batch was \d.jpg'):
        train(toy_iterations(tmp_path))


# Three iterations make an epoch; by iterations, every fourth is saved.
@pytest.mark.parametrize(
    ('toy', 'iteration', 'kept', 'message'),
    [
        (toy_config, 1, None, 'epoch 1, iteration 2: loss is nan'),
        (
            toy_config,
            3,
            None,
            r'^iteration 3: .* state_dict\.layers\.0\.bias\..*no complete',
        ),
        (toy_config, 6, 'epoch_1.pth', r'^iteration 6: .* in state_dict\.layers\.0\.bias\.'),
        (toy_config, 12, 'epoch_3.pth', '^iteration 12: .*epoch_3.pth is the last'),
        (toy_iterations, 1, None, '^iteration 2: loss is nan'),
        (toy_iterations, 8, 'iter_4.pth', '^iteration 8: NaN .*clip gradients'),
        (toy_iterations, 12, 'iter_8.pth', '^iteration 12: .*iter_8.pth is the last'),
    ],
)
def test_the_last_good_checkpoint_stays(tmp_path, monkeypatch, toy, iteration, kept, message):
    with monkeypatch.context() as patched:
        ruin(patched, iteration, a_parameter)
        with pytest.raises(UserError, match=message):
            train(quick(toy(tmp_path)))
    assert names(tmp_path) == ([kept] if kept else [])
    if kept:
        assert latest_checkpoint(tmp_path) == tmp_path / kept
        weights = continues(quick(toy(tmp_path)), tmp_path / kept)
        assert all(weight.isfinite().all() for weight in weights.values())


@pytest.mark.parametrize('checkpoint', [None, dict(type='CheckpointHook', interval=5)])
def test_nonfinite_final_weights_fail_the_run(tmp_path: Path, monkeypatch, checkpoint):
    """Without any checkpoint, and where none is due at the end."""
    config = quick(toy_config(tmp_path, epochs=2))
    config.default_hooks.checkpoint = checkpoint and dict(checkpoint, save_last=False)
    ruin(monkeypatch, 6, a_parameter)
    with pytest.raises(UserError, match='^iteration 6: NaN or infinity in state_dict'):
        train(config)
    assert not names(tmp_path)


def test_the_best_one_stays(tmp_path: Path, monkeypatch):
    """Every evaluation of the toy is the best one."""
    config = quick(toy_config(tmp_path, epochs=3))
    config = evaluated(config, interval=9, save_best='score', rule='greater')
    ruin(monkeypatch, 6, a_parameter)
    with pytest.raises(UserError, match='^iteration 6: NaN or infinity in state_dict'):
        train(config)
    assert names(tmp_path) == ['best_score_epoch_1.pth']


def test_no_time_is_spent_on_evaluating_ruined_weights(tmp_path: Path, monkeypatch):
    config = evaluated(quick(toy_config(tmp_path, epochs=2)), interval=9)
    ruin(monkeypatch, 3, a_parameter)
    monkeypatch.setattr(ToyModel, 'val_step', None)
    with pytest.raises(UserError, match='^iteration 3: NaN or infinity in state_dict'):
        train(config)


@MODELS.register_module()
class Counting(ToyModel):
    """With buffers that no loss depends on: one becomes NaN, the other may start as infinity."""

    def __init__(self, ruined_at: int = 5, masked: bool = False):
        super().__init__()
        self.ruined_at, self.calls = ruined_at, 0
        self.register_buffer('seen', torch.zeros(()))
        if masked:
            self.register_buffer('mask', torch.full((2, 2), float('-inf')))

    def forward(self, inputs: list[Tensor], data_samples: list, mode: str = 'tensor'):
        self.calls += 1
        if self.calls == self.ruined_at:
            self.seen += float('nan')
        return super().forward(inputs, data_samples, mode)


@PARAM_SCHEDULERS.register_module()
class Spoilt(_ParamScheduler):
    """A schedule with values that are not finite from some step on."""

    def __init__(self, optimizer, value: str, start: int, **kwargs):
        self.value, self.start = value, start
        super().__init__(optimizer, 'lr', **kwargs)

    def _get_value(self) -> list[float]:
        groups = self.optimizer.param_groups
        return [float(self.value) if self.last_step >= self.start else g['lr'] for g in groups]


@HOOKS.register_module()
class Writes(Hook):
    """A foreign hook, called last, that writes into the second checkpoint."""

    priority = 'LOWEST'

    def __init__(self, entry: str):
        self.entry = entry

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        if checkpoint['meta']['iter'] >= 6:
            nan = float('nan')
            entries = dict(
                weight=('state_dict', {**checkpoint['state_dict'], 'new': torch.tensor([0, nan])}),
                array=('mine', dict(a=[np.array([1, nan])])),
                number=('mine', dict(a=(nan,))),
                log=('message_hub', {**checkpoint['message_hub'], 'a': nan}),
                infinite=('mine', dict(best=-float('inf'), text=np.array(['nan']))),
                sparse=('mine', torch.eye(3).to_sparse()),
            )
            key, value = entries[self.entry]
            checkpoint[key] = value


def a_moment(config: Config, monkeypatch) -> None:
    """Only resuming needs it."""
    ruin(monkeypatch, 6, its_moment)


def a_buffer(config: Config, monkeypatch) -> None:
    config.model.type = 'Counting'


def a_buffer_and_its_average(config: Config, monkeypatch) -> None:
    config.model.type = 'Counting'
    config.custom_hooks += [EMA]


def an_average_alone(config: Config, monkeypatch) -> None:
    """The average overflows, but the weights do not."""

    def overflow(self, averaged, source, steps):
        averaged.fill_(float('inf'))

    monkeypatch.setattr('mmengine.model.ExponentialMovingAverage.avg_func', overflow)
    config.custom_hooks += [dict(EMA, begin_epoch=2)]


def a_buffer_from_the_beginning(config: Config, monkeypatch) -> None:
    config.model.update(type='Counting', ruined_at=0, masked=True)


def a_rate_from_the_beginning(config: Config, monkeypatch) -> None:
    config.optim_wrapper.optimizer.lr = float('inf')


def a_rate(value: str, start: int, by_epoch: bool = False):
    def spoil(config: Config, monkeypatch) -> None:
        schedule = dict(type='Spoilt', value=value, by_epoch=by_epoch, start=start)
        config.param_scheduler = [schedule]

    return spoil


def an_entry_of_another_hook(entry: str):
    def spoil(config: Config, monkeypatch) -> None:
        config.custom_hooks += [dict(type='Writes', entry=entry)]

    return spoil


RATE = r'optimizer\.param_groups\[0\]\.lr.*%s.*param_scheduler'
OTHERS = r'^iteration 6: .* in %s\..*epoch_1.pth.*Writes'


@pytest.mark.parametrize(
    ('toy', 'spoil', 'message', 'kept'),
    [
        (
            toy_config,
            a_moment,
            r'^iteration 6: .* in optimizer\.state\.1\.exp_avg_sq\.',
            'epoch_1.pth',
        ),
        (toy_config, a_buffer, r'^iteration 6: .* in state_dict\.seen\.', 'epoch_1.pth'),
        (
            toy_config,
            a_buffer_and_its_average,
            r'\.seen, ema_state_dict\.module\.seen\.',
            'epoch_1.pth',
        ),
        (toy_config, an_average_alone, r'^iteration 6: .* in state_dict\.layers\.0', 'epoch_1.pth'),
        (toy_config, a_buffer_from_the_beginning, r'^training starts .*\.mask\. .*persist', None),
        (toy_config, a_rate_from_the_beginning, f'^training starts .*{RATE % ""}', None),
        # The rate becomes NaN after the last step before a checkpoint, whose weights are finite.
        (
            toy_config,
            a_rate('nan', 2, True),
            f'^iteration 6: .* in {RATE % "epoch_1"}',
            'epoch_1.pth',
        ),
        (toy_iterations, a_rate('inf', 8), f'^iteration 8: .* in {RATE % "iter_4"}', 'iter_4.pth'),
        # The error names the rate, not the images of the next batch, whose loss would be NaN.
        (
            toy_iterations,
            a_rate('nan', 5),
            '^iteration 6: lr is nan.*param_scheduler',
            'iter_4.pth',
        ),
        (
            toy_config,
            an_entry_of_another_hook('weight'),
            OTHERS % r'state_dict\.new',
            'epoch_1.pth',
        ),
        (toy_config, an_entry_of_another_hook('array'), OTHERS % r'mine\.a\[0\]', 'epoch_1.pth'),
        (toy_config, an_entry_of_another_hook('number'), OTHERS % r'mine\.a\[0\]', 'epoch_1.pth'),
    ],
)
def test_nonfinite_entries_are_named_and_not_saved(
    tmp_path: Path, monkeypatch, toy, spoil, message: str, kept: str | None
):
    config = quick(toy(tmp_path))
    spoil(config, monkeypatch)
    with pytest.raises(UserError, match=message):
        train(config)
    assert names(tmp_path) == ([kept] if kept else [])


@pytest.mark.parametrize('entry', ['log', 'infinite', 'sparse'])
def test_nonfinite_logs_and_best_scores_are_allowed(tmp_path: Path, entry: str):
    """The log keeps NaN of classes that do not occur; the best score is infinite at first."""
    config = quick(toy_config(tmp_path, epochs=2))
    config.custom_hooks += [dict(type='Writes', entry=entry)]
    train(config)
    assert names(tmp_path) == ['epoch_2.pth']


def test_a_schedule_that_waits_for_a_first_score(tmp_path: Path):
    config = evaluated(quick(toy_config(tmp_path, epochs=2)))
    config.param_scheduler = [
        dict(type='ReduceOnPlateauLR', monitor='score', rule='greater', by_epoch=True)
    ]
    config.train_cfg.val_begin = 2
    train(config)
    assert 'epoch_2.pth' in names(tmp_path)


def one_of_two(rank: int, store: str, said: str) -> None:
    """A process with a finite model or not: buffers can differ between processes."""
    dist.init_process_group('gloo', init_method=f'file://{store}', rank=rank, world_size=2)
    model = ToyModel()
    if rank == 1:
        model.layers[0].bias.data[0] = float('nan')
    runner = SimpleNamespace(
        model=model,
        hooks=[],
        optim_wrapper=OptimWrapper(AdamW(model.parameters())),
        work_dir=store,
        iter=5,
    )
    try:
        StopAtNaNHook().before_val_epoch(runner)
    except UserError as error:
        Path(f'{said}{rank}').write_text(str(error))


def test_processes_stop_together(tmp_path: Path):
    start_server()  # which has already imported the slow libraries
    context = multiprocessing.get_context('forkserver')
    said = str(tmp_path / 'said')
    ranks = [
        context.Process(target=one_of_two, args=(rank, str(tmp_path / 'store'), said))
        for rank in range(2)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    first, second = (Path(f'{said}{rank}').read_text() for rank in range(2))
    assert first == second and first.startswith('iteration 5: NaN or infinity in state_dict.')
