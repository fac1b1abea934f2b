"""Class masks are read as mmseg reads them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.workbench.check.data_sets import ImageFile
from ptnt_mm.workbench.check.mask_values import open_mask
from ptnt_mm.workbench.data.class_masks import VALUES, label_of_each_value


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
def test_masks_are_read_as_mmseg_reads_them(tmp_path: Path, mode: str):
    file = tmp_path / 'mask.png'
    values = np.array([[0, 1, 1], [1, 0, 1]], bool if mode == '1' else np.uint8)
    pixels = values.astype(np.uint16) if mode == 'I;16' else values
    image = Image.fromarray(pixels)
    if mode == 'P':
        image.putpalette([9, 9, 9, 8, 8, 8])
    image.save(file)
    counts, faults = open_mask(ImageFile(file, mask=file), 'pillow')
    assert len(faults) == (mode == 'I;16')
    assert counts[:3].tolist() == [2, 4, 0]
    assert (counts == _counts_of_mmseg(file)).all()


def test_a_decoder_may_keep_the_only_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import mmcv

    file = tmp_path / 'mask.png'
    Image.fromarray(np.array([[0, 1, 1], [1, 0, 7]], np.uint8)).save(file)
    decode = mmcv.imfrombytes
    monkeypatch.setattr(mmcv, 'imfrombytes', lambda *args, **kw: decode(*args, **kw)[..., None])
    counts, faults = open_mask(ImageFile(file, mask=file), 'pillow')
    assert not faults and counts[7] == 1
    assert (counts == _counts_of_mmseg(file)).all()


def _counts_of_mmseg(file: Path) -> np.ndarray:
    """Pixels of each label that mmseg loads, (256,)."""
    from mmseg.datasets.transforms import LoadAnnotations

    results = dict(seg_map_path=str(file), reduce_zero_label=False, seg_fields=[])
    return np.bincount(LoadAnnotations()(results)['gt_seg_map'].ravel(), minlength=VALUES)


def test_a_mask_in_grey_and_alpha_has_no_indices(tmp_path: Path):
    file = tmp_path / 'mask.png'
    Image.fromarray(np.zeros((2, 3, 2), np.uint8)).save(file)
    counts, [(_, evidence)] = open_mask(ImageFile(file, mask=file), 'pillow')
    assert counts is None and 'LA' in evidence
