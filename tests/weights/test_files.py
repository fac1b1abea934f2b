"""Where published checkpoints are written; ``tools/test_checkpoint_tool.py`` has the commands."""

from pathlib import Path

import pytest
import torch

from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.files import publish_checkpoint


def test_a_published_checkpoint_is_written_to_a_folder_that_exists(tmp_path: Path):
    file = tmp_path / 'good.pth'
    torch.save({'backbone.w': torch.zeros(1)}, file)
    assert publish_checkpoint(str(file), tmp_path).parent == tmp_path
    with pytest.raises(UserError, match='nowhere'):
        publish_checkpoint(str(file), tmp_path / 'nowhere')
