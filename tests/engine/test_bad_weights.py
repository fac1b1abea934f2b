"""Weights that are not numbers never take the place of good ones."""

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from forked import start_server
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.registry import MODELS
from torch import Tensor
from torch.optim import AdamW

from ptnt_mm.engine.hooks.bad_weights import require_finite
from ptnt_mm.engine.work_dir import latest_checkpoint
from ptnt_mm.utils.errors import UserError

from .test_checkpointing import evaluated, names
from .toy import ToyModel, toy_config, toy_iterations, train

EMA = dict(type='EMAHook', update_buffers=True)


def ruin(monkeypatch, iteration: int, spoil) -> None:
    """Let ``spoil(optimizer)`` follow one step of the optimizer."""
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


def quick(config: Config) -> Config:
    """Without workers, whose start is most of such a training."""
    config.train_dataloader.update(num_workers=0, persistent_workers=False)
    if config.get('val_dataloader'):
        config.val_dataloader.update(num_workers=0, persistent_workers=False)
    return config


def watched(config: Config) -> Config:
    config.custom_hooks += [dict(type='StopAtBadWeightsHook')]
    return quick(config)


def continues(config: Config, checkpoint: Path) -> dict[str, Tensor]:
    """Resume, and train to the end."""
    config.resume, config.load_from = True, str(checkpoint)
    return train(config)


# Three iterations make an epoch; by iterations, every fourth is saved.
@pytest.mark.parametrize(
    ('toy', 'iteration', 'kept', 'message'),
    [
        (toy_config, 1, None, 'epoch 1, iteration 2: loss is nan'),
        (toy_config, 3, None, '^iteration 3: 1 weights hold .*: layers.0.bias.*no checkpoint was'),
        (toy_config, 6, 'epoch_1.pth', '^iteration 6: 1 weights hold NaN .*: layers.0.bias'),
        (toy_config, 12, 'epoch_3.pth', '^iteration 12: .* checkpoint is .*epoch_3.pth'),
        (toy_iterations, 1, None, '^iteration 2: loss is nan'),
        (toy_iterations, 8, 'iter_4.pth', '^iteration 8: 1 weights .*clip gradients'),
        (toy_iterations, 12, 'iter_8.pth', '^iteration 12: .* checkpoint is .*iter_8.pth'),
    ],
)
def test_the_last_good_checkpoint_stays(tmp_path, monkeypatch, toy, iteration, kept, message):
    with monkeypatch.context() as patched:
        ruin(patched, iteration, a_parameter)
        with pytest.raises(UserError, match=message):
            train(watched(toy(tmp_path)))
    assert names(tmp_path) == [kept] * bool(kept)
    if kept:
        assert latest_checkpoint(tmp_path) == tmp_path / kept
        weights = continues(watched(toy(tmp_path)), tmp_path / kept)
        assert all(weight.isfinite().all() for weight in weights.values())


@pytest.mark.parametrize('checkpoint', [None, dict(type='CheckpointHook', interval=5)])
def test_a_ruined_result_is_no_success(tmp_path: Path, monkeypatch, checkpoint):
    """Without any checkpoint, and where none is due at the end."""
    config = watched(toy_config(tmp_path, epochs=2))
    config.default_hooks.checkpoint = checkpoint and dict(checkpoint, save_last=False)
    ruin(monkeypatch, 6, a_parameter)
    with pytest.raises(UserError, match='^iteration 6: 1 weights hold NaN'):
        train(config)
    assert not names(tmp_path)


def test_the_best_one_stays(tmp_path: Path, monkeypatch):
    """The hook that saves looks for itself; every evaluation of the toy is the best."""
    config = quick(evaluated(tmp_path, epochs=3))
    config.default_hooks.checkpoint.update(interval=9)
    ruin(monkeypatch, 6, a_parameter)
    with pytest.raises(UserError, match='^iteration 6: 1 weights hold NaN'):
        train(config)
    assert names(tmp_path) == ['best_score_epoch_1.pth']


def test_no_time_is_spent_on_evaluating_ruined_weights(tmp_path: Path, monkeypatch):
    config = watched(evaluated(tmp_path, epochs=2))
    config.default_hooks.checkpoint.update(interval=9)
    ruin(monkeypatch, 3, a_parameter)
    monkeypatch.setattr(ToyModel, 'val_step', None)
    with pytest.raises(UserError, match='^iteration 3: 1 weights hold NaN'):
        train(config)


def test_what_only_resuming_needs_counts_too(tmp_path: Path, monkeypatch):
    ruin(monkeypatch, 6, its_moment)
    with pytest.raises(UserError, match='^iteration 6: 1 weights .*: exp_avg_sq of layers.0.bias'):
        train(quick(toy_config(tmp_path)))
    assert names(tmp_path) == ['epoch_1.pth']


@MODELS.register_module()
class Counting(ToyModel):
    """With a buffer that no loss depends on."""

    ruined_at = 5

    def __init__(self):
        super().__init__()
        self.register_buffer('seen', torch.zeros(()))
        self.calls = 0

    def forward(self, inputs: list[Tensor], data_samples: list, mode: str = 'tensor'):
        self.calls += 1
        if self.calls == self.ruined_at:
            self.seen += float('nan')
        return super().forward(inputs, data_samples, mode)


def test_buffers_and_averages_count_too(tmp_path: Path, monkeypatch):
    config = quick(toy_config(tmp_path, model=dict(type='Counting')))
    with pytest.raises(UserError, match='^iteration 6: 1 weights .*: seen'):
        train(config)
    assert names(tmp_path) == ['epoch_1.pth']
    config = quick(toy_config(tmp_path / 'averaged', model=dict(type='Counting')))
    config.custom_hooks += [EMA]
    with pytest.raises(UserError, match='^iteration 6: 2 weights .*: seen, averaged module.seen'):
        train(config)


def test_an_average_alone(tmp_path: Path, monkeypatch):
    """It overflows, and what it averages does not."""

    def overflow(self, averaged, source, steps):
        averaged.fill_(float('inf'))

    monkeypatch.setattr('mmengine.model.ExponentialMovingAverage.avg_func', overflow)
    config = quick(toy_config(tmp_path))
    config.custom_hooks += [dict(EMA, begin_epoch=2)]
    with pytest.raises(UserError, match='^iteration 6: 4 weights .*: averaged module.layers.0.'):
        train(config)
    assert names(tmp_path) == ['epoch_1.pth']


def test_what_is_infinite_from_the_beginning_is_said_then(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(Counting, 'ruined_at', 0)
    plain = Counting.__init__

    def masked(self):
        plain(self)
        self.register_buffer('mask', torch.full((2, 2), float('-inf')))

    monkeypatch.setattr(Counting, '__init__', masked)
    with pytest.raises(UserError, match='^before the first iteration 1 weights .*: mask.*persist'):
        train(watched(toy_config(tmp_path, model=dict(type='Counting'))))


def one_of_two(rank: int, store: str, said: str) -> None:
    """A process whose model is whole, or not; SyncBN and the like leave buffers to each."""
    dist.init_process_group('gloo', init_method=f'file://{store}', rank=rank, world_size=2)
    model = ToyModel()
    if rank == 1:
        model.layers[0].bias.data[0] = float('nan')
    runner = SimpleNamespace(
        model=model,
        hooks=[],
        optim_wrapper=OptimWrapper(AdamW(model.parameters())),
        message_hub=SimpleNamespace(runtime_info={}),
    )
    try:
        require_finite(runner, 5)
    except UserError as error:
        Path(f'{said}{rank}').write_text(str(error))


def test_processes_stop_together(tmp_path: Path):
    start_server()  # which has imported what takes long
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
    assert first == second and first.startswith('iteration 5: 1 weights hold NaN')
