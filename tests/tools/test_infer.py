"""``ptnt infer``, as a user runs it."""

import json
from pathlib import Path

from inference.samples import (
    CLASSES,
    NAME,
    write_checkpoint,
    write_six_images,
)
from PIL import Image

from .workplace import Workplace


def infer_six(folder: Path, *words: str) -> dict:
    """Results for a corrupt file and five images, which must be drawn."""
    write_six_images(folder / 'six')
    config, *more = words
    args = ('six', config, 'weights.pth', '--device', 'cpu', *more)
    done = Workplace(folder).run('infer.py', *args, check=False)
    assert done.returncode == 1
    assert 'FAILED corrupt.jpg: ' in done.stdout
    assert done.stdout.endswith('error: 1 of 6 images failed\n')
    assert 'Warning' not in done.stdout and 'Traceback' not in done.stdout
    out = 'work_dirs/infer/six'
    said = f'Processed 5 images\npredictions  {out}/predictions.json\ndrawn        {out}/drawn\n'
    assert said in done.stdout
    found = json.loads((folder / out / 'predictions.json').read_text())
    assert [entry['file'] for entry in found['failed']] == ['corrupt.jpg']
    assert len(found['images']) == 5
    for entry in found['images']:
        for place in ('six', f'{out}/drawn'):
            with Image.open(folder / place / entry['file']) as image:
                assert image.size == (entry['width'], entry['height'])
    return found


def test_a_detector_on_six_kinds_of_images(tmp_path: Path):
    """The corrupt one is reported, the others are drawn."""
    write_checkpoint(tmp_path / 'weights.pth')
    found = infer_six(tmp_path, NAME, '--cfg-options', 'model.test_cfg.max_per_img=3')
    assert (found['classes'], found['score_thr']) == (list(CLASSES), 0.3)
    assert all(len(entry['detections']) == 3 for entry in found['images'])
