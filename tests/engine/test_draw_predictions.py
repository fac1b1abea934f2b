"""Pictures of a segmenter's test images: all are drawn, with the truth next to the prediction."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.structures import BaseDataElement, PixelData
from PIL import Image
from torch import nn

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError

META = dict(classes=('rest', 'road'), palette=[(0, 0, 0), (200, 100, 50)])
SIZE = (6, 8)
"""Height and width."""


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    model = nn.Identity()
    model.num_classes = 2
    config = Config(dict(test_dataloader=dict(dataset=dict(type=SimpleNamespace))))
    data = SimpleNamespace(dataset=SimpleNamespace(metainfo=META))
    folders = dict(folder=str(tmp_path / 'shown'), root=str(tmp_path / 'images'))
    hook = HOOKS.build(dict(type='DrawPredictionsHook', **folders))
    hook.before_test(SimpleNamespace(model=model, cfg=config, test_dataloader=data))
    return hook


def black(file: Path, size: tuple[int, int] = SIZE) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((*size, 3), np.uint8)).save(file)
    return file


def sample_of(file: Path | None, **maps: int) -> BaseDataElement:
    """A sample whose maps have one class each; with a single channel, they are floats."""
    sample = BaseDataElement(metainfo={} if file is None else dict(img_path=str(file)))
    for key, label in maps.items():
        sample.set_data({key: PixelData(data=torch.full((1, *SIZE), float(label)))})
    return sample


def test_images_of_one_name_in_several_folders(hook: Hook, tmp_path: Path):
    names = ('a/0001.jpg', 'b/0001.jpg', 'b/0001.bmp')
    files = [black(tmp_path / 'images' / name) for name in names]
    files.append(black(tmp_path / 'elsewhere' / '0001.jpg'))
    hook.after_test_iter(None, 0, outputs=[sample_of(file, pred_sem_seg=1) for file in files[:2]])
    hook.after_test_iter(None, 1, outputs=[sample_of(file, pred_sem_seg=0) for file in files[2:]])
    shown = tmp_path / 'shown'
    whole = files[-1].relative_to(files[-1].anchor)
    expected = {'a/0001.png', 'b/0001.png', 'b/0001.bmp.png', whole.with_suffix('.png').as_posix()}
    assert {path.relative_to(shown).as_posix() for path in shown.rglob('*.*')} == expected


def test_truth_beside_prediction(hook: Hook, tmp_path: Path):
    file = black(tmp_path / 'images' / 'x.png')
    hook.after_test_iter(None, 0, outputs=[sample_of(file, gt_sem_seg=255, pred_sem_seg=1)])
    drawn = np.asarray(Image.open(tmp_path / 'shown' / 'x.png'))
    assert drawn.shape == (SIZE[0], 2 * SIZE[1], 3)
    assert not drawn[:, : SIZE[1]].any(), 'ignored pixels stay as they are'
    assert (drawn[:, SIZE[1] :] == (100, 50, 25)).all()


def test_what_is_missing_or_does_not_fit(hook: Hook, tmp_path: Path):
    file, cut = black(tmp_path / 'x.png'), tmp_path / 'cut.png'
    cut.write_bytes(file.read_bytes()[:40])
    large = black(tmp_path / 'large.png', (9, 9))
    for sample, message in (
        (sample_of(file), 'neither pred_sem_seg, as segmenters do, .*: omit it'),
        (sample_of(None, pred_sem_seg=1), 'needs the img_path of each image: add it to the meta'),
        (sample_of(cut, pred_sem_seg=1), r'cut\.png (is not an image|cannot be read)'),
        (sample_of(tmp_path / 'none.png', pred_sem_seg=1), r'none\.png cannot be read: .*No such'),
        (sample_of(large, pred_sem_seg=1), r'large\.png has \(9, 9\) pixels .* map \(6, 8\)'),
    ):
        with pytest.raises(UserError, match=f'`show_dir`.*{message}'):
            hook.after_test_iter(None, 0, outputs=[sample])
