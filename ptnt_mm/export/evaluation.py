"""Evaluate an exported file on a config's test set, with the host's own metrics."""

import copy
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.model import BaseModel

from ptnt_mm.deploy import Deployed
from ptnt_mm.engine.build import build_runner
from ptnt_mm.engine.failures import late_building
from ptnt_mm.inference.predictor import fill_sample
from ptnt_mm.registry import MODELS


@MODELS.register_module()
class DeployedModel(BaseModel):
    """An exported file in place of a model, for MMEngine's test loop.

    It reads, resizes and pads images itself, as it does without a host.

    Args:
        file: The file.
        runtime: What runs it; by default the one that the suffix belongs to.
        data_preprocessor: Not used.
    """

    def __init__(self, file: str, runtime: str | None = None, data_preprocessor: Any = None):
        super().__init__()
        self._deployed = Deployed(file, runtime)

    def test_step(self, data: dict) -> list:
        """Fill in the predictions of a batch of samples."""
        return [fill_sample(one, self._deployed(one.img_path)) for one in data['data_samples']]

    def forward(self, *args: Any, **options: Any) -> None:
        """Not used: there is nothing to train."""


def evaluate_file(config: Config, file: Path, work_dir: Path) -> dict:
    """The metrics of an exported file, by name, on the test set of a config."""
    config = copy.deepcopy(config)
    config.model = dict(type='DeployedModel', file=str(file))
    config.update(load_from=None, resume=False, work_dir=str(work_dir))
    runner = build_runner(config)
    with late_building():
        return runner.test()
