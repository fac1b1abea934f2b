"""Findings for the hosts' configs without data."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding
from ptnt_mm.workbench.check.network import check_normalisation
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import ConfigView

from .spoilt import Partial

FURTHER = {
    'mmdet': (
        'misc/d2_mask-rcnn_r50-caffe_fpn_ms-90k_coco.py',
        'qdtrack/qdtrack_faster-rcnn_r50_fpn_8xb2-4e_mot17halftrain_test-mot17halfval.py',
    ),
    'mmseg': ('bisenetv2/bisenetv2_fcn_4xb4-ohem-160k_cityscapes-1024x1024.py',),
}
"""In addition to the first of each folder."""

AT_FAULT = {
    # It has models= instead of model=, so nothing reads the size of its preprocessor.
    'bisenetv2/bisenetv2_fcn_4xb4-ohem-160k_cityscapes-1024x1024.py': [
        "models: nothing reads it: did you mean 'model'?",
        'model.data_preprocessor: has neither size nor size_divisor',
    ]
}
"""Errors with which training would stop, too."""


class WithoutFiles(Partial):
    """Configs whose data is missing."""

    def run(self, subject: str, *quick: Iterable[Finding], thorough: Iterable[Finding] = ()):
        if subject != 'files':
            super().run(subject, *quick, thorough=thorough)


def _configs(package: str) -> dict[str, Path]:
    """The first config of each folder, and some more, by name."""
    root = Path(import_module(package).__file__).parent / '.mim' / 'configs'
    folders = [folder for folder in sorted(root.iterdir()) if folder.name != '_base_']
    first = [files[0] for folder in folders if (files := sorted(folder.glob('*.py')))]
    files = [*first, *(root / name for name in FURTHER[package])]
    return {file.relative_to(root).as_posix(): file for file in files}


def _errors(file: Path) -> list[str]:
    """Errors that would stop training, other than missing files."""
    try:
        config = read_config(str(file))
    except UserError as error:
        assert 'mmpretrain' in str(error)
        return []
    if config.get('train_dataloader') is None or config.get('model') is None:
        # A base for other configs.
        return []
    # Building all models takes an hour; docs/check.md has the outcome.
    view = ConfigView(config)
    inspection = WithoutFiles(view, ('train', 'val'))
    inspection.check_settings()
    inspection.check_data()
    inspection.run('mean and std', check_normalisation(view))
    return list(map(str, inspection.errors))


@pytest.mark.parametrize('package', ['mmdet', 'mmseg'])
def test_nothing_is_wrong_with_the_configs_of_a_host(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Without data.
    monkeypatch.chdir(tmp_path)
    configs = _configs(package)
    assert len(configs) > 50
    found = {name: _errors(file) for name, file in configs.items()}
    at_fault = {name: errors for name, errors in AT_FAULT.items() if name in configs}
    assert {name: errors for name, errors in found.items() if errors} == at_fault
