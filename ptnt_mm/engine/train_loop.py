"""Iteration-based training that can be stopped and resumed."""

from contextlib import closing
from typing import Any

from mmengine.runner import IterBasedTrainLoop
from torch import nn
from torch.utils.data import DataLoader

from ptnt_mm.engine.endless_loader import EndlessLoader
from ptnt_mm.registry import LOOPS


@LOOPS.register_module()
class RepeatableIterBasedTrainLoop(IterBasedTrainLoop):
    """MMEngine's loop, but a resumed run continues at once, as if it had never stopped.

    MMEngine's loop loads and augments all images again that were used before the stop, and the
    random numbers of its workers depend on their number and history. It also starts them before
    any hook is called. This loop takes the same arguments.
    """

    def __init__(
        self,
        runner: Any,
        dataloader: DataLoader | dict,
        max_iters: int,
        val_begin: int = 1,
        val_interval: int = 1000,
        dynamic_intervals: list[tuple[int, int]] | None = None,
    ):
        if isinstance(dataloader, dict):
            differ = runner._randomness_cfg.get('diff_rank_seed', False)
            dataloader = runner.build_dataloader(dataloader, runner.seed, differ)
        loader = EndlessLoader(dataloader)
        super().__init__(runner, loader, max_iters, val_begin, val_interval, dynamic_intervals)

    def run(self) -> nn.Module:
        """Train from the resumed iteration, or from the first; return the model."""
        self.runner.call_hook('before_train')
        # For hooks, the whole run is one epoch.
        self.runner.call_hook('before_train_epoch')
        self.dataloader.begin(self.runner.seed, self.iter)
        with closing(iter(self.dataloader)) as self.dataloader_iterator:
            while self.iter < self.max_iters and not self.stop_training:
                self.runner.model.train()
                self.run_iter(next(self.dataloader_iterator))
                self._decide_current_val_interval()
                due = self.iter % self.val_interval == 0 or self.iter == self.max_iters
                if self.runner.val_loop is not None and self.iter >= self.val_begin and due:
                    self.runner.val_loop.run()
        self.runner.call_hook('after_train_epoch')
        self.runner.call_hook('after_train')
        return self.runner.model
