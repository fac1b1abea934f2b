"""One network on all processes: the running statistics of BatchNorm are averaged."""

from collections.abc import Iterator
from typing import Any

from mmengine.dist import all_reduce_params
from mmengine.hooks import EMAHook, Hook
from torch import Tensor, nn

from ptnt_mm.registry import HOOKS


@HOOKS.register_module()
class AverageBuffersHook(Hook):
    """Average BatchNorm's running statistics over all processes before evaluating and saving.

    MMEngine does not broadcast buffers, so each process has the statistics of the images that it
    saw. The processes would evaluate different networks, and the first one's would be saved.

    MMEngine's SyncBuffersHook averages all buffers, once per epoch. This one averages statistics
    alone, also those of EMA's weights, and also before a checkpoint within an epoch, which
    :class:`WholeCheckpointHook` asks it for.
    """

    # EMAHook (NORMAL) exchanges weights for those that are evaluated: averaging comes first.
    priority = 'ABOVE_NORMAL'

    def before_val_epoch(self, runner: Any) -> None:
        """Average before each evaluation during training."""
        self.average(runner)

    def after_train_epoch(self, runner: Any) -> None:
        """Average at the end of each epoch."""
        self.average(runner)

    def average(self, runner: Any) -> None:
        """Average the statistics of a runner's model and of its EMA, in place."""
        averages = (hook.ema_model for hook in runner.hooks if isinstance(hook, EMAHook))
        for model in (runner.model, *averages):
            all_reduce_params(list(_statistics(model)), op='mean')


def _statistics(model: nn.Module) -> Iterator[Tensor]:
    for module in model.modules():
        is_norm = isinstance(module, nn.modules.batchnorm._BatchNorm)
        if is_norm and module.running_mean is not None:
            yield from (module.running_mean, module.running_var)
