"""Faults of masks, and of the config that reads them, planted one at a time."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.utils.findings import Severity

from .spoilt import (
    TRAIN_SET,
    MaskDemo,
    Plant,
    all_of,
    assert_named,
    counted,
    file_of,
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


def _list(*lines: str) -> Plant:
    def plant(masks: MaskDemo) -> None:
        (masks.folder / 'train.txt').write_text('\n'.join(lines))
        masks.set(ann_file='train.txt')

    return plant


def _train_is_val(masks: MaskDemo) -> None:
    prefix = dict(img_path='train', seg_map_path='semantic/train')
    masks.options |= {f'{s}_dataloader.dataset.data_prefix': prefix for s in ('val', 'test')}


ERRORS = {
    # Lists
    'image folder missing': (
        own(data_prefix=dict(img_path='trian', seg_map_path='semantic/train')),
        "demo/trian does not exist; nearest is 'train'",
    ),
    'folders named as for detection': (
        own(data_prefix=dict(_delete_=True, img='train')),
        'data_prefix has no folder of images',
    ),
    'mask folder not named': (
        own(data_prefix=dict(_delete_=True, img_path='train')),
        'data_prefix has no folder of masks',
    ),
    'images with another ending': (
        own(img_suffix='.jpeg'),
        "demo/train ends in img_suffix='.jpeg'; the files end in .jpg (16)",
    ),
    'list with endings': (
        _list('000001.jpg', '000002.jpg'),
        '2 of 2 images not found … 000001.jpg.jpg',
    ),
    'empty list': (_list(), 'train.txt lists no image'),
    'list missing': (own(ann_file='trian.txt'), 'trian.txt does not exist'),
    'unknown data set': (own(type='BaseSegDatset'), "did you mean 'BaseSegDataset'?"),
    # Masks missing
    'mask missing': (
        lambda masks: masks.mask('train', 3).unlink(),
        '1 of 16 masks not found … semantic/train/000003.png',
    ),
    'another suffix in the config': (
        own(seg_map_suffix='_labels.png'),
        "16 of 16 masks not found … there is 000001.png: set seg_map_suffix='.png'",
    ),
    'another suffix in the folder': (
        _rename('train', '_labelTrainIds.png'),
        '16 of 16 masks not found',
    ),
    'the wrong folder of masks': (
        own(data_prefix=dict(img_path='train', seg_map_path='annotations')),
        '16 of 16 masks not found',
    ),
    # Form of masks
    'mask of a different size': (
        _redraw_one(lambda pixels: pixels[:50, :60]),
        '1 of 16 masks not the size … 000003.png is 60x50, its image',
    ),
    'image turned by EXIF': (file_of(with_exif(6)), '1 of 16 masks not the size'),
    'mask truncated': (_truncate, '1 of 16 masks not readable … 000003.png ('),
    'file that is not a mask': (
        lambda masks: masks.mask('val', 3).write_text('no picture'),
        '1 of 8 masks not readable … 000003.png (not an image)',
    ),
    'mask in colours': (
        _redraw_one(lambda pixels: COLOURS[pixels]),
        '1 of 16 masks with several channels … 000003.png (RGB)',
    ),
    'mask as grey RGBA': (
        _redraw_one(lambda pixels: np.stack([pixels] * 3 + [pixels * 0 + 255], axis=-1)),
        '000003.png (RGBA)',
    ),
    'mask of 16 bits and large values': (
        _redraw_one(lambda pixels: pixels.astype(np.uint16) * 1000),
        '1 of 16 masks with values that do not fit into 8 bits',
    ),
    'palettes read with OpenCV': (
        all_of(
            lambda masks: [_as_palette(file) for file in masks.masks('train')],
            settings({TRAIN_SET + 'pipeline.1.imdecode_backend': 'cv2'}),
        ),
        '16 of 16 masks with several channels … (P)',
    ),
    # Values of masks
    'a value that is no class': (
        _redraw_one(_pixel(9)),
        '1 of 16 masks with values that are not classes … 000003.png (9)',
    ),
    'masks that begin at 1': (
        _redraw_all(lambda pixels: pixels + 1),
        'of 16 masks with values … (5)',
    ),
    'background not named': (
        all_of(
            _everywhere(metainfo=dict(_delete_=True, classes=CLASSES[1:])),
            settings({HEAD + 'num_classes': 4}),
        ),
        '(4)',
    ),
    'black and white': (
        _redraw_all(lambda pixels: (pixels > 0).astype(np.uint8) * 255),
        'all 16 masks contain only 0 and 255',
    ),
    'greys': (_redraw_all(lambda pixels: pixels * 60), 'are not classes'),
    'zero label where 0 is background': (
        _everywhere(reduce_zero_label=True),
        'ignores the value 0,',
    ),
    'zero label in the pipeline': (
        settings({TRAIN_SET + 'pipeline.1.reduce_zero_label': True}),
        'reduce_zero_label is False for the data set, True for LoadAnnotations',
    ),
    'masks without any class': (
        _redraw_all(lambda pixels: pixels * 0 + 255),
        '16 of 16 masks without a pixel that counts',
    ),
    # Classes and heads
    'head of another number': (
        settings({HEAD + 'num_classes': 150}),
        'decode_head.num_classes: is 150, the data has 5 classes',
    ),
    'colours of another number': (
        _everywhere(**{'metainfo.palette': [(0, 0, 0), (1, 1, 1)]}),
        'metainfo.palette has 2 colours, but there are 5 classes',
    ),
    'names of a class that has others': (
        _everywhere(type='ADE20KDataset'),
        "are not classes of ADE20KDataset: 'background'",
    ),
    'no classes': (
        _everywhere(metainfo=dict(_delete_=True)),
        'val: the data set has no class names, which IoUMetric needs',
    ),
    # Pipelines
    'masks that are not loaded': (own(pipeline=[LOAD, PACK]), 'the pipeline loads no masks'),
    'masks that are not measured': (
        settings({VAL_SET + 'pipeline': [LOAD, PACK]}),
        'val: the pipeline loads no masks',
    ),
    'masks loaded too late': (
        own(pipeline=[LOAD, RESIZE, LOAD_MASKS, PACK]),
        'Resize before LoadAnnotations',
    ),
    'masks loaded too early': (
        settings({VAL_SET + 'pipeline': [LOAD, LOAD_MASKS, RESIZE, PACK]}),
        'Resize after LoadAnnotations',
    ),
    # Crops
    'crops larger than the size': (
        settings({TRAIN_SET + 'pipeline.3.crop_size': (192, 256)}),
        'crops are 192x256 (height x width), larger than the 192x192',
    ),
    'no size': (settings({SCALE + 'size': None}), 'has neither size nor size_divisor'),
    'size twice': (settings({SCALE + 'size_divisor': 32}), 'has size and size_divisor'),
    'size that is not a size': (
        settings({SCALE + 'size': 'large'}),
        "size is 'large', not (height, width)",
    ),
    # Ignored pixels
    'padding that is a class': (
        settings({SCALE + 'seg_pad_val': 0}),
        'data_preprocessor: seg_pad_val is 0, the ignore_index of the loss 255',
    ),
    'ignored by the head alone': (
        settings({HEAD + 'ignore_index': 0}),
        "val: the evaluator's ignore_index is 255, the ignore_index of the loss 0",
    ),
    'ignored by the evaluator alone': (
        settings({'val_evaluator.ignore_index': 0}),
        "val: the evaluator's ignore_index is 0",
    ),
    'ignored by the data set alone': (
        own(ignore_index=0),
        "train: the data set's ignore_index is 0",
    ),
    # Evaluation
    "a detector's evaluator": (
        settings({'val_evaluator': dict(_delete_=True, type='CocoMetric')}),
        "unknown type 'CocoMetric'",
    ),
    'a misspelt metric': (
        settings({'val_evaluator.iou_metrics': ['mIou']}),
        "unknown iou_metrics 'mIou': did you mean 'mIoU'?",
    ),
    'no evaluator': (settings({'val_evaluator': None}), 'val: there is no evaluator'),
    # Equal for every host
}
"""Planted faults, and words of the errors that name them."""

WARNINGS = {
    # Masks missing
    'image missing': (
        lambda masks: masks.image('train', 3).unlink(),
        '1 of 16 masks without an image: 000003.png',
    ),
    # Form of masks
    'mask of 16 bits': (
        _redraw_one(lambda pixels: pixels.astype(np.uint16)),
        '1 of 16 masks of more than 8 bits … 000003.png',
    ),
    # Values of masks
    'zero label where 0 is a class': (
        _everywhere(reduce_zero_label=True, metainfo=dict(classes=('road', *CLASSES[1:]))),
        'no mask has 5, the value of cup',
    ),
    'zero label in one split': (
        settings({VAL_SET + 'reduce_zero_label': True}),
        'reduce_zero_label is True, that of train False',
    ),
    'mask without a class': (
        _redraw_one(lambda pixels: pixels * 0 + 255),
        '1 of 16 masks without a pixel that counts … 000003.png (255)',
    ),
    'mask of zeros alone with zero label': (
        all_of(
            _redraw_all(lambda pixels: pixels + 1),
            _everywhere(reduce_zero_label=True),
            _redraw_one(lambda pixels: pixels * 0),
        ),
        '1 of 16 masks without a pixel that counts … 000003.png (0)',
    ),
    'class without pixels': (
        _redraw_all(lambda pixels: np.where(pixels == 3, 0, pixels).astype(np.uint8)),
        'no pixel of crate',
    ),
    'first class without pixels': (
        _redraw_all(lambda pixels: np.maximum(pixels, 1)),
        'no pixel of background',
    ),
    # Crops
    'no crops': (own(pipeline=[LOAD, LOAD_MASKS, PACK]), 'does not crop images to a fixed size'),
    # Evaluation
    'another evaluator': (
        settings({'val_evaluator': dict(_delete_=True, type='DepthMetric')}),
        'measured by DepthMetric, not by IoUMetric',
    ),
    # Equal for every host
}
"""Planted faults, and words of the warnings that name them."""

FAULTS = ERRORS | WARNINGS


def _as_palette(file: Path) -> None:
    """Save a mask as a PNG with colours."""
    mask = Image.fromarray(np.array(Image.open(file)), mode='P')
    mask.putpalette(COLOURS.ravel().tolist())
    mask.save(file)


ALONE = (
    'mask missing',
    'another suffix in the folder',
    'mask of a different size',
    'a value that is no class',
    'masks that begin at 1',
    'black and white',
    'zero label where 0 is background',
    'mask without a class',
    'mask in colours',
    'mask truncated',
    'colours of another number',
    'crops larger than the size',
    'no size',
)
"""Faults with one cause, reported once for each data set."""


@pytest.mark.parametrize('name', FAULTS)
def test_a_planted_fault_is_found(masks: MaskDemo, name: str):
    plant, words = FAULTS[name]
    plant(masks)
    found = masks.findings('images', 'masks')
    assert_named(found, words, ERROR if name in ERRORS else WARNING)
    if name in ALONE:
        places = [finding.where for finding in counted(found)]
        assert len(places) == len({*places}), '\n'.join(map(str, found))


def test_nothing_is_found_in_the_intact_set(masks: MaskDemo):
    findings = masks.findings('images', 'masks', 'heads', 'weights', 'trial')
    assert counted(findings) == []
    said = '\n'.join(map(str, findings))
    assert 'train: 16 masks open, values 0 to 4' in said
    assert 'val: an image is evaluated: aAcc, mIoU, mAcc' in said


def test_nothing_is_found_in_masks_with_palettes(masks: MaskDemo):
    for file in (*masks.masks('train'), *masks.masks('val')):
        _as_palette(file)
    assert counted(masks.findings('images', 'masks')) == []


def test_nothing_is_found_in_masks_that_begin_at_1_with_zero_label(masks: MaskDemo):
    _redraw_all(lambda pixels: pixels + 1)(masks)
    _redraw_one(_pixel(0))(masks)
    masks.set_everywhere(reduce_zero_label=True)
    findings = masks.findings('images', 'masks')
    assert counted(findings) == []
    assert any('values 1 to 5, 0.' in str(finding) for finding in findings)


def test_nothing_is_found_in_masks_of_one_bit(masks: MaskDemo):
    _redraw_all(lambda pixels: pixels > 0)(masks)
    masks.set_everywhere(metainfo=dict(_delete_=True, classes=('background', 'object')))
    masks.options[HEAD + 'num_classes'] = 2
    assert counted(masks.findings('images', 'masks')) == []


def test_nothing_is_found_in_an_intact_list(masks: MaskDemo):
    _list('000001', '000002', '000003', '000004')(masks)
    findings = masks.findings('images', 'masks')
    assert counted(findings) == [] and any('train: 4 masks' in str(one) for one in findings)


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
    'wrapped',
    [
        lambda inner: dict(type='RepeatDataset', times=2, dataset=inner),
        lambda inner: dict(type='ConcatDataset', datasets=[inner, inner]),
    ],
)
def test_wrapped_data_sets_are_looked_into(masks: MaskDemo, wrapped):
    masks.mask('train', 3).unlink()
    train = masks.config().train_dataloader.dataset.to_dict()
    masks.options['train_dataloader.dataset'] = dict(_delete_=True, **wrapped(train))
    (finding,) = counted(masks.findings('images', 'masks'))
    assert '1 of 16 masks not found' in str(finding)


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


def test_what_only_testing_needs_is_a_warning(masks: MaskDemo):
    masks.options['test_evaluator.ignore_index'] = 0
    (finding,) = counted(masks.findings())
    assert finding.severity is WARNING and finding.where == 'test'


@pytest.mark.parametrize('value', [None, 'text'])
@pytest.mark.parametrize(
    'key', ['img_suffix', 'seg_map_suffix', 'metainfo', 'data_prefix', 'pipeline', 'indices']
)
def test_no_value_of_a_setting_causes_a_traceback(masks: MaskDemo, key: str, value: object):
    config = masks.config()
    config.train_dataloader.dataset[key] = value
    masks.config = lambda: config
    assert masks.findings('images', 'masks')
