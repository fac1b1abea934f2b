"""Faults of masks, and of the config that reads them, planted one at a time."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.utils.findings import Severity

from .spoilt import (
    NOT_COMPLETED,
    TRAIN_SET,
    MaskDemo,
    Plant,
    all_of,
    assert_one_names,
    counted,
    file_of,
    listed,
    own,
    settings,
    with_exif,
)

ERROR, WARNING = Severity.ERROR, Severity.WARNING
CLASSES = ('background', 'ball', 'coin', 'crate', 'cup')
COLOURS = np.array(
    [(0, 0, 0), (230, 159, 0), (86, 180, 233), (0, 158, 115), (204, 121, 167)], np.uint8
)
HEAD = 'model.decode_head.'
SCALE = 'model.data_preprocessor.'
VAL_SET = 'val_dataloader.dataset.'

LOAD, LOAD_MASKS, PACK = (
    dict(type=name) for name in ('LoadImageFromFile', 'LoadAnnotations', 'PackSegInputs')
)
RESIZE = dict(type='Resize', scale=(192, 192))


def _everywhere(**options: object) -> Plant:
    return lambda masks: masks.set_everywhere(**options)


def _redraw_all(change: Callable[[np.ndarray], np.ndarray]) -> Plant:
    """Change the masks of both splits."""
    return lambda masks: [masks.redraw(masks.masks(s), change) for s in ('train', 'val')]


def _redraw_one(change: Callable[[np.ndarray], np.ndarray], split: str = 'train') -> Plant:
    """Change the third mask."""
    return lambda masks: masks.redraw([masks.mask(split, 3)], change)


def _rename(split: str, ending: str, *numbers: int) -> Plant:
    """Give masks another suffix; all of them if none are named."""

    def plant(masks: MaskDemo) -> None:
        for file in [masks.mask(split, n) for n in numbers] or masks.masks(split):
            file.rename(file.with_name(file.stem + ending))

    return plant


def _truncate(masks: MaskDemo) -> None:
    file = masks.mask('train', 3)
    file.write_bytes(file.read_bytes()[:-200])


def _pixel(value: int) -> Callable[[np.ndarray], np.ndarray]:
    """Set a block of pixels to a value."""

    def change(pixels: np.ndarray) -> np.ndarray:
        pixels[:4, :4] = value
        return pixels

    return change


FAULTS = {
    # Lists
    'image folder missing': (
        own(data_prefix=dict(img_path='trian', seg_map_path='semantic/train')),
        ERROR, 'train', 'demo/trian',
    ),
    'folders named as for detection': (
        own(data_prefix=dict(_delete_=True, img='train')), ERROR, 'train', 'data_prefix'
    ),
    'mask folder not named': (
        own(data_prefix=dict(_delete_=True, img_path='train')), ERROR, 'train', 'data_prefix'
    ),
    'images with another ending': (own(img_suffix='.jpeg'), ERROR, 'train', "img_suffix='.jpeg'"),
    'list with endings': (listed('000001.jpg', '000002.jpg'), ERROR, 'train', '000001.jpg.jpg'),
    'empty list': (listed(), ERROR, 'train', 'train.txt'),
    'list missing': (own(ann_file='trian.txt'), ERROR, 'train', 'trian.txt'),
    'unknown data set': (
        own(type='BaseSegDatset'), ERROR, 'train_dataloader.dataset.type', "'BaseSegDatset'"
    ),
    # Masks missing
    'mask missing': (
        lambda masks: masks.mask('train', 3).unlink(), ERROR, 'train', 'semantic/train/000003.png'
    ),
    'another suffix in the config': (
        own(seg_map_suffix='_labels.png'), ERROR, 'train', "seg_map_suffix='.png'"
    ),
    'another suffix in the folder': (
        _rename('train', '_labelTrainIds.png'), ERROR, 'train', '16 of 16 masks'
    ),
    'the wrong folder of masks': (
        own(data_prefix=dict(img_path='train', seg_map_path='annotations')),
        ERROR, 'train', 'annotations/000001.png',
    ),
    'image missing': (
        lambda masks: masks.image('train', 3).unlink(), WARNING, 'train', '000003.png'
    ),
    # Form of masks
    'mask of a different size': (
        _redraw_one(lambda pixels: pixels[:50, :60]), ERROR, 'train', '000003.png is 60x50'
    ),
    'image turned by EXIF': (file_of(with_exif(6)), ERROR, 'train', '000003.png is 256x192'),
    'mask truncated': (_truncate, ERROR, 'train', '000003.png'),
    'file that is not a mask': (
        lambda masks: masks.mask('val', 3).write_text('no picture'),
        ERROR, 'val and test', '000003.png',
    ),
    'mask in colours': (
        _redraw_one(lambda pixels: COLOURS[pixels]), ERROR, 'train', '000003.png (RGB)'
    ),
    'mask as grey RGBA': (
        _redraw_one(lambda pixels: np.stack([pixels] * 3 + [pixels * 0 + 255], axis=-1)),
        ERROR, 'train', '000003.png (RGBA)',
    ),
    'mask of 16 bits and large values': (
        _redraw_one(lambda pixels: pixels.astype(np.uint16) * 1000),
        ERROR, 'train', '000003.png (1000',
    ),
    'palettes read with OpenCV': (
        all_of(
            lambda masks: [_as_palette(file) for file in masks.masks('train')],
            settings({TRAIN_SET + 'pipeline.1.imdecode_backend': 'cv2'}),
        ),
        ERROR, 'train', '000001.png (P)',
    ),
    'mask of 16 bits': (
        _redraw_one(lambda pixels: pixels.astype(np.uint16)), WARNING, 'train', '000003.png'
    ),
    # Values of masks
    'a value that is no class': (_redraw_one(_pixel(9)), ERROR, 'train', '000003.png (9)'),
    'masks that begin at 1': (
        _redraw_all(lambda pixels: pixels + 1), ERROR, 'train', '000001.png (5)'
    ),
    'background not named': (
        all_of(
            _everywhere(metainfo=dict(_delete_=True, classes=CLASSES[1:])),
            settings({HEAD + 'num_classes': 4}),
        ),
        ERROR, 'train', '000001.png (4)',
    ),
    'black and white': (
        _redraw_all(lambda pixels: (pixels > 0).astype(np.uint8) * 255), ERROR, 'train', '0 and 255'
    ),
    'greys': (_redraw_all(lambda pixels: pixels * 60), ERROR, 'train', '(60, 180, 240)'),
    'zero label where 0 is background': (
        _everywhere(reduce_zero_label=True), ERROR, 'train', 'reduce_zero_label=True'
    ),
    'zero label in the pipeline': (
        settings({TRAIN_SET + 'pipeline.1.reduce_zero_label': True}),
        ERROR, 'train', 'reduce_zero_label is False',
    ),
    'masks without any class': (
        _redraw_all(lambda pixels: pixels * 0 + 255), ERROR, 'train', '16 of 16 masks'
    ),
    'zero label where 0 is a class': (
        _everywhere(reduce_zero_label=True, metainfo=dict(classes=('road', *CLASSES[1:]))),
        WARNING, 'train', 'reduce_zero_label=True',
    ),
    'zero label in one split': (
        settings({VAL_SET + 'reduce_zero_label': True}), WARNING, 'val', 'reduce_zero_label is True'
    ),
    'mask without a class': (
        _redraw_one(lambda pixels: pixels * 0 + 255), WARNING, 'train', '000003.png (255)'
    ),
    'mask of zeros alone with zero label': (
        all_of(
            _redraw_all(lambda pixels: pixels + 1),
            _everywhere(reduce_zero_label=True),
            _redraw_one(lambda pixels: pixels * 0),
        ),
        WARNING, 'train', '000003.png (0)',
    ),
    'class without pixels': (
        _redraw_all(lambda pixels: np.where(pixels == 3, 0, pixels).astype(np.uint8)),
        WARNING, 'train', 'crate',
    ),
    'first class without pixels': (
        _redraw_all(lambda pixels: np.maximum(pixels, 1)), WARNING, 'train', 'background'
    ),
    # Classes and heads
    'head of another number': (
        settings({HEAD + 'num_classes': 150}), ERROR, 'model.decode_head.num_classes', '150'
    ),
    'colours of another number': (
        _everywhere(**{'metainfo.palette': [(0, 0, 0), (1, 1, 1)]}), ERROR, 'train', '2 colours'
    ),
    'names of a class that has others': (
        _everywhere(type='ADE20KDataset'), ERROR, 'train', "'background'"
    ),
    'no classes': (_everywhere(metainfo=dict(_delete_=True)), ERROR, 'val', 'IoUMetric'),
    # Pipelines
    'masks that are not loaded': (own(pipeline=[LOAD, PACK]), ERROR, 'train', 'masks'),
    'masks that are not measured': (
        settings({VAL_SET + 'pipeline': [LOAD, PACK]}), ERROR, 'val', 'masks'
    ),
    'masks loaded too late': (
        own(pipeline=[LOAD, RESIZE, LOAD_MASKS, PACK]), ERROR, 'train', 'Resize'
    ),
    'masks loaded too early': (
        settings({VAL_SET + 'pipeline': [LOAD, LOAD_MASKS, RESIZE, PACK]}), ERROR, 'val', 'Resize'
    ),
    # Crops
    'crops larger than the size': (
        settings({TRAIN_SET + 'pipeline.3.crop_size': (192, 256)}), ERROR, 'train', '192x256'
    ),
    'no size': (settings({SCALE + 'size': None}), ERROR, 'model.data_preprocessor', 'size_divisor'),
    'size twice': (
        settings({SCALE + 'size_divisor': 32}), ERROR, 'model.data_preprocessor', 'size_divisor'
    ),
    'size that is not a size': (
        settings({SCALE + 'size': 'large'}), ERROR, 'model.data_preprocessor', "'large'"
    ),
    'no crops': (
        own(pipeline=[LOAD, LOAD_MASKS, PACK]), WARNING, 'train', 'model.data_preprocessor'
    ),
    # Ignored pixels
    'padding that is a class': (
        settings({SCALE + 'seg_pad_val': 0}), ERROR, 'model.data_preprocessor', 'seg_pad_val is 0'
    ),
    'ignored by the head alone': (
        settings({HEAD + 'ignore_index': 0}), ERROR, 'val', 'ignore_index is 255'
    ),
    'ignored by the evaluator alone': (
        settings({'val_evaluator.ignore_index': 0}), ERROR, 'val', 'ignore_index is 0'
    ),
    'ignored by the data set alone': (own(ignore_index=0), ERROR, 'train', 'ignore_index is 0'),
    # Evaluation
    "a detector's evaluator": (
        settings({'val_evaluator': dict(_delete_=True, type='CocoMetric')}),
        ERROR, 'val_evaluator.type', "'mmdet.CocoMetric'",
    ),
    'a misspelt metric': (
        settings({'val_evaluator.iou_metrics': ['mIou']}), ERROR, 'val', "'mIou'"
    ),
    'no evaluator': (settings({'val_evaluator': None}), ERROR, 'val', 'evaluator'),
    'another evaluator': (
        settings({'val_evaluator': dict(_delete_=True, type='DepthMetric')}),
        WARNING, 'val', 'DepthMetric',
    ),
}  # fmt: skip
"""Planted faults; the severity and the subject of the finding, and a value that it names."""


def _as_palette(file: Path) -> None:
    """Save a mask as a PNG with colours."""
    mask = Image.fromarray(np.array(Image.open(file)), mode='P')
    mask.putpalette(COLOURS.ravel().tolist())
    mask.save(file)


ALONE = (
    'mask missing', 'another suffix in the folder', 'mask of a different size',
    'a value that is no class', 'masks that begin at 1', 'black and white',
    'zero label where 0 is background', 'mask without a class', 'mask in colours', 'mask truncated',
    'colours of another number', 'crops larger than the size', 'no size',
)  # fmt: skip
"""Faults with one cause, reported once for each data set."""


@pytest.mark.parametrize('name', FAULTS)
def test_a_planted_fault_is_found(masks: MaskDemo, name: str):
    plant, severity, where, value = FAULTS[name]
    plant(masks)
    found = masks.findings('images', 'masks')
    assert_one_names(found, severity, where, value)
    if name in ALONE:
        places = [finding.where for finding in counted(found)]
        assert len(places) == len({*places}), '\n'.join(map(str, found))


def test_nothing_is_found_in_the_intact_set(masks: MaskDemo):
    findings = masks.findings('images', 'masks', 'heads', 'weights', 'trial')
    assert counted(findings) == []
    said = '\n'.join(map(str, findings))
    assert 'train: 16 masks open, values 0 to 4' in said
    assert 'val: an image is evaluated: aAcc, mIoU, mAcc' in said


def test_nothing_is_found_in_masks_that_begin_at_1_with_zero_label(masks: MaskDemo):
    _redraw_all(lambda pixels: pixels + 1)(masks)
    _redraw_one(_pixel(0))(masks)
    masks.set_everywhere(reduce_zero_label=True)
    findings = masks.findings('images', 'masks')
    assert counted(findings) == []
    assert any('values 1 to 5, 0.' in str(finding) for finding in findings)


def test_nothing_is_found_in_own_data(masks: MaskDemo):
    own = masks.folder / 'own'
    for split in ('train', 'val'):
        for link, folder in ((f'images/{split}', split), (f'masks/{split}', f'semantic/{split}')):
            (own / link).parent.mkdir(parents=True, exist_ok=True)
            (own / link).symlink_to(masks.folder / folder)
    masks.folder, masks.name = own, 'custom_seg'
    findings = masks.findings('images', 'masks', 'heads', gpus=8)
    assert counted(findings) == []
    assert any('train: 16 masks open, values 0 to 4' in str(finding) for finding in findings)


@pytest.mark.parametrize(
    ('plant', 'words'),
    [
        (own(type='LEVIRCDDataset'), 'LEVIRCDDataset is not a BaseSegDataset'),
        (own(data_root='s3://bucket/'), 'is not local: its images and masks were not checked'),
        (settings({TRAIN_SET + 'pipeline.3.crop_size': 96}), 'crops are 96x96 (height x width)'),
        (settings({'model.data_preprocessor.type': 'Own'}), 'is not a SegDataPreProcessor'),
    ],
)
def test_what_is_worth_knowing_is_noted(masks: MaskDemo, plant: Plant, words: str):
    plant(masks)
    notes = [one for one in masks.findings() if one.severity is Severity.NOTE]
    assert any(words in str(finding) for finding in notes)


def test_a_test_split_without_masks_is_no_fault_if_it_only_writes_predictions(masks: MaskDemo):
    masks.options |= {
        'test_dataloader.dataset.data_prefix': dict(_delete_=True, img_path='val'),
        'test_dataloader.dataset.pipeline': [LOAD, PACK],
        'test_evaluator': dict(type='IoUMetric', format_only=True, output_dir='out'),
    }
    assert counted(masks.findings('images', 'masks')) == []


@pytest.mark.parametrize('value', [None, 'text'])
@pytest.mark.parametrize(
    'key', ['img_suffix', 'seg_map_suffix', 'metainfo', 'data_prefix', 'pipeline', 'indices']
)
def test_no_value_of_a_setting_causes_a_traceback(masks: MaskDemo, key: str, value: object):
    config = masks.config()
    config.train_dataloader.dataset[key] = value
    masks.config = lambda: config
    said = '\n'.join(map(str, masks.findings('images', 'masks')))
    assert NOT_COMPLETED not in said, said
