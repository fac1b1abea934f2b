"""A checkpoint is loaded only if its weights fit the model; the guard checks those of runners."""

import copy

import attacks
import pytest
import torch
from detector_runs import ARCH, EMA, Averaged, Detector, changed, make_runner
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.runner.checkpoint import CheckpointLoader

from ptnt_mm.models import PyramidTNT
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint

pytestmark = pytest.mark.slow


def test_test_loads_all_weights(tmp_path, trained):
    path, first = trained
    runner = make_runner(tmp_path / 'run', load_from=str(path))
    runner.test()
    for key, weight in read_checkpoint(path)['state_dict'].items():
        torch.testing.assert_close(runner.model.state_dict()[key], weight, rtol=0, atol=0)


def test_test_with_tta_loads_all_weights(tmp_path, trained):
    tta = Averaged(Detector())
    make_runner(tmp_path / 'run', model=tta, load_from=str(trained[0])).load_or_resume()
    for key, weight in read_checkpoint(trained[0])['state_dict'].items():
        torch.testing.assert_close(tta.module.state_dict()[key], weight, rtol=0, atol=0)
    bad = Averaged(Detector(num_classes=9))
    with pytest.raises(CheckpointError, match='num_classes'):
        make_runner(tmp_path / 'bad', model=bad, load_from=str(trained[0])).load_or_resume()


@pytest.mark.parametrize('resume', [False, True])
def test_classes_in_another_order_are_refused(tmp_path, trained, resume):
    def reverse(checkpoint):
        checkpoint['meta']['dataset_meta'] = dict(classes=('dog', 'cat'))

    path = changed(tmp_path / 'reversed.pth', trained[0], reverse)
    for start in ('train', 'test'):
        runner = make_runner(tmp_path / start, load_from=str(path), resume=resume, epochs=2)
        with pytest.raises(UserError, match='dog, cat; data: cat, dog'):
            getattr(runner, start)()


@pytest.mark.parametrize('resume', [False, True])
def test_misfits_are_refused_by_test_and_resume(tmp_path, trained, resume):
    model = Detector(num_classes=5)
    runner = make_runner(tmp_path / 'a', model, load_from=str(trained[0]), resume=resume, epochs=2)
    with pytest.raises(CheckpointError, match=r'epoch_1\.pth .*bbox_head\.weight.*num_classes'):
        runner.train() if resume else runner.test()


def weights_at_start(runner):
    """Load as training does, up to its first iteration."""
    runner.train_loop  # noqa: B018  builds it
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner.call_hook('before_run')
    runner.load_or_resume()
    return runner.model.state_dict()


def test_fine_tuning_allows_another_head(tmp_path, trained):
    model = Detector(num_classes=7, extra=True)
    runner = make_runner(tmp_path / 'run', model=model, load_from=str(trained[0]))
    ours = weights_at_start(runner)
    for key, weight in read_checkpoint(trained[0])['state_dict'].items():
        if key.startswith('backbone.'):
            torch.testing.assert_close(ours[key], weight, rtol=0, atol=0)


@pytest.mark.parametrize('prefix', ['', 'module.'])
@pytest.mark.parametrize('hooks', [[], [EMA]])
def test_fine_tuning_converts_position_tables(tmp_path, trained, prefix, hooks):
    state = {prefix + key: w for key, w in read_checkpoint(trained[0])['state_dict'].items()}
    torch.save({'meta': {}, 'state_dict': state}, tmp_path / 'start.pth')
    expected = PyramidTNT(ARCH, pretrain_img_size=128)
    load_pretrained(expected, tmp_path / 'start.pth')
    model = Detector(pretrain_img_size=128)
    runner = make_runner(
        tmp_path / 'run', model=model, hooks=hooks, load_from=str(tmp_path / 'start.pth')
    )
    ours = weights_at_start(runner)
    for key, weight in expected.state_dict().items():
        torch.testing.assert_close(ours[f'backbone.{key}'], weight, rtol=0, atol=0)
    if hooks:
        ema = next(hook for hook in runner.hooks if hasattr(hook, 'ema_model')).ema_model.module
        torch.testing.assert_close(ema.backbone.outer_pos, expected.outer_pos)


def test_bare_weights_and_moving_averages(tmp_path, trained):
    """As ``ptnt checkpoint convert`` writes them."""
    saved = read_checkpoint(trained[0])['state_dict']
    torch.save(saved, tmp_path / 'bare.pth')
    runner = make_runner(tmp_path / 'run', hooks=[EMA], load_from=str(tmp_path / 'bare.pth'))
    ours = weights_at_start(runner)
    ema = next(hook for hook in runner.hooks if hasattr(hook, 'ema_model')).ema_model.module
    for key, weight in saved.items():
        torch.testing.assert_close(ours[key], weight, rtol=0, atol=0)
    for weight, average in zip(runner.model.parameters(), ema.parameters(), strict=True):
        torch.testing.assert_close(weight, average, rtol=0, atol=0)


def without_a_block(checkpoint):
    state = checkpoint['state_dict']
    for key in [key for key in state if key.startswith('backbone.stages.2.blocks.0.outer_mlp')]:
        del state[key]


def test_fine_tuning_needs_the_whole_backbone(tmp_path, trained):
    path = changed(tmp_path / 'part.pth', trained[0], without_a_block)
    with pytest.raises(CheckpointError, match=r'backbone\.stages\.2\.blocks\.0'):
        make_runner(tmp_path / 'run', load_from=str(path)).train()


def test_guard_works_with_moving_averages(tmp_path, averaged):
    path, first = averaged
    saved = read_checkpoint(path)
    ema = next(hook for hook in first.hooks if hasattr(hook, 'ema_model')).ema_model
    key = 'bbox_head.weight'
    torch.testing.assert_close(saved['state_dict'][key], ema.module.state_dict()[key])
    # Resume: the averages go back to the hook, the weights to the model.
    runner = make_runner(tmp_path / 'run', hooks=[EMA], epochs=2, resume=True, load_from=str(path))
    kept = {}
    original = runner.call_hook

    def call_hook(name, **kwargs):
        original(name, **kwargs)
        if name == 'before_train':
            kept.update(copy.deepcopy(runner.model.state_dict()))

    runner.call_hook = call_hook
    runner.train()
    torch.testing.assert_close(kept[key], saved['ema_state_dict'][f'module.{key}'])
    # Test: the averages are tested, with the hook or without it.
    plain = make_runner(tmp_path / 'test', load_from=str(path))
    plain.test()
    torch.testing.assert_close(plain.model.state_dict()[key], saved['state_dict'][key])


def test_misfit_is_refused_before_the_averages_are_copied(tmp_path, averaged):
    model = Detector(num_classes=5)
    runner = make_runner(
        tmp_path / 'run', model, hooks=[EMA], epochs=2, resume=True, load_from=str(averaged[0])
    )
    with pytest.raises(CheckpointError, match='num_classes'):
        runner.train()


def test_the_guard_drops_the_config_even_after_another_loader(tmp_path, trained):
    """Another plugin may replace our loader with its own, also when the run starts."""
    canary = tmp_path / 'canary'
    checkpoint = attacks.store_config(read_checkpoint(trained[0]), attacks.command_config(canary))
    ours = CheckpointLoader._schemes['']

    class OtherPlugin(Hook):
        priority = 'LOW'

        def before_run(self, runner: Runner) -> None:
            CheckpointLoader.register_scheme('', lambda *args, **kw: checkpoint, force=True)
            CheckpointLoader._schemes[''].__name__ = 'load_from_elsewhere'

    hooks = [OtherPlugin()]
    try:
        make_runner(tmp_path / 'run', hooks=hooks, epochs=2, resume=True, load_from='x.pth').train()
    finally:
        CheckpointLoader.register_scheme('', ours, force=True)
    assert not canary.exists()
