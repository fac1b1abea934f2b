"""Inference as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inference.samples import CLASSES, NAME, write_checkpoint, write_six_images
from PIL import Image

ROOT = Path(__file__).parents[2]


def test_a_folder_of_six_kinds_of_images(tmp_path: Path):
    """The corrupt one is reported, the others are drawn."""
    pytest.importorskip('mmdet')
    write_six_images(tmp_path / 'six')
    write_checkpoint(tmp_path / 'epoch_1.pth')
    done = subprocess.run(
        [
            sys.executable, str(ROOT / 'tools' / 'infer.py'), 'six', NAME, 'epoch_1.pth',
            '--device', 'cpu', '--cfg-options', 'model.test_cfg.max_per_img=3',
        ],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert 'FAILED corrupt.jpg: ' in done.stderr
    assert done.stderr.endswith('error: 1 of 6 images failed\n')
    assert 'Warning' not in done.stderr and 'Traceback' not in done.stderr
    out = 'work_dirs/infer/six'
    assert done.stdout == (
        f'Looked at 5 images. Predictions: {out}/predictions.json  drawn: {out}/drawn\n'
    )
    found = json.loads((tmp_path / out / 'predictions.json').read_text())
    assert found['classes'] == list(CLASSES)
    assert [entry['file'] for entry in found['failed']] == ['corrupt.jpg']
    assert len(found['images']) == 5
    for entry in found['images']:
        assert len(entry['detections']) == 3
        for folder in ('six', f'{out}/drawn'):
            with Image.open(tmp_path / folder / entry['file']) as image:
                assert image.size == (entry['width'], entry['height'])
