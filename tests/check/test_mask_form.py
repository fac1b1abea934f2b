"""Class masks are read as mmseg reads them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.workbench.data.class_masks import VALUES, label_of_each_value

from .spoilt import MaskDemo, counted
from .test_mask_data import CLASSES


@pytest.mark.parametrize('reduce_zero_label', [False, True])
@pytest.mark.parametrize('label_map', [None, {0: 1, 1: 255, 2: 0}])
def test_labels_are_mmsegs(tmp_path: Path, reduce_zero_label: bool, label_map: dict | None):
    from mmseg.datasets.transforms import LoadAnnotations

    file = tmp_path / 'mask.png'
    values = np.arange(VALUES, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(values).save(file)
    results = dict(
        seg_map_path=str(file),
        reduce_zero_label=reduce_zero_label,
        label_map=label_map,
        seg_fields=[],
    )
    labels = LoadAnnotations()(results)['gt_seg_map']
    assert (label_of_each_value(reduce_zero_label, label_map)[values] == labels).all()


@pytest.mark.parametrize('mode', ['L', 'P', '1', 'I;16'])
def test_masks_are_read_as_mmseg_reads_them(masks: MaskDemo, mode: str):
    for file in masks.masks('train'):
        pixels = (np.array(Image.open(file)) > 0) * np.uint8(3)
        kinds = {'1': bool, 'I;16': np.uint16}
        image = Image.fromarray(pixels.astype(kinds.get(mode, np.uint8)))
        if mode == 'P':
            image.putpalette([9, 9, 9, 8, 8, 8])
        image.save(file)
    *of_files, absent = counted(masks.findings('masks'))
    read = set(np.concatenate([_labels_of_mmseg(file) for file in masks.masks('train')]))
    names = [name for label, name in enumerate(CLASSES) if label not in read]
    assert absent.what == f'no pixel of {", ".join(names)}' and len(names) == 3
    assert len(of_files) == (mode == 'I;16')


def test_a_decoder_may_keep_the_only_channel(masks: MaskDemo, monkeypatch: pytest.MonkeyPatch):
    import mmcv

    masks.redraw([masks.mask('train', 3)], lambda pixels: np.where(pixels == 1, 7, pixels))
    assert 7 in _labels_of_mmseg(masks.mask('train', 3))
    decode = mmcv.imfrombytes
    monkeypatch.setattr(mmcv, 'imfrombytes', lambda *args, **kw: decode(*args, **kw)[..., None])
    assert 7 in _labels_of_mmseg(masks.mask('train', 3))
    (found,) = counted(masks.findings('masks'))
    assert '000003.png (7)' in found.what


def _labels_of_mmseg(file: Path) -> np.ndarray:
    """The labels that mmseg loads."""
    from mmseg.datasets.transforms import LoadAnnotations

    results = dict(seg_map_path=str(file), reduce_zero_label=False, seg_fields=[])
    return np.unique(LoadAnnotations()(results)['gt_seg_map'])
