"""Faults of a segmenter's data that occur in real exports, and unusual but correct data."""

import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from .spoilt import (
    TRAIN_SET,
    MaskDemo,
    Plant,
    all_of,
    as_folder,
    converted,
    dangling,
    file_of,
    settings,
    with_exif,
)

COLOURS = [0, 0, 0, 230, 159, 0, 86, 180, 233, 0, 158, 115, 204, 121, 167]


def _mask(change: Callable[[Path], object], split: str = 'train') -> Plant:
    """Change the third mask's file."""
    return lambda demo: change(demo.mask(split, 3))


def _masks(change: Callable[[Path], object]) -> Plant:
    """Change the files of all masks of both splits."""

    def plant(demo: MaskDemo) -> None:
        for file in (*demo.masks('train'), *demo.masks('val')):
            change(file)

    return plant


def _pixels(change: Callable[[np.ndarray], np.ndarray], **how: object) -> Callable[[Path], None]:
    return lambda file: Image.fromarray(change(np.array(Image.open(file)))).save(file, **how)


def _palette(bits: int, **how: object) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        mask = Image.fromarray(np.array(Image.open(file)) & 2**bits - 1, mode='P')
        mask.putpalette(COLOURS)
        mask.save(file, bits=bits, **how)

    return change


def _greys_of(bits: int) -> Callable[[Path], None]:
    """Write a grey PNG of 2 or 4 bits, which Pillow can only read."""

    def change(file: Path) -> None:
        pixels = np.array(Image.open(file)) % 2**bits
        height, width = pixels.shape
        spread = (pixels[..., None] >> np.arange(bits)[::-1] & 1).reshape(height, -1)
        rows = np.packbits(spread.astype(np.uint8), axis=1)
        raw = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()
        header = struct.pack('>IIBBBBB', width, height, bits, 0, 0, 0, 0)
        chunks = ((b'IHDR', header), (b'IDAT', zlib.compress(raw)), (b'IEND', b''))
        content = b''.join(
            struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
            for kind, data in chunks
        )
        file.write_bytes(b'\x89PNG\r\n\x1a\n' + content)

    return change


def _of_classes(*names: str) -> Plant:
    """Give the data sets and the head other classes."""

    def plant(demo: MaskDemo) -> None:
        demo.set_everywhere(metainfo=dict(_delete_=True, classes=names))
        demo.options['model.decode_head.num_classes'] = len(names)

    return plant


def _as_suffix(suffix: str, save: Callable[[np.ndarray, Path], object]) -> Plant:
    """Save all masks in another format."""

    def plant(demo: MaskDemo) -> None:
        for split in ('train', 'val'):
            for file in demo.masks(split):
                save(np.array(Image.open(file)), file.with_suffix(suffix))
                file.unlink()
        demo.set_everywhere(seg_map_suffix=suffix)

    return plant


def _saved(dtype: type, **how: object) -> Callable[[np.ndarray, Path], None]:
    return lambda pixels, file: Image.fromarray(pixels.astype(dtype)).save(file, **how)


def _list(*lines: str, ending: str = '\n') -> Plant:
    def plant(demo: MaskDemo) -> None:
        (demo.folder / 'train.txt').write_bytes(ending.join(lines).encode())
        demo.set(ann_file='train.txt')

    return plant


def _val_is(folder: str, make: Callable[[MaskDemo], object]) -> Plant:
    prefix = dict(img_path=folder, seg_map_path='semantic/train')
    options = {f'{s}_dataloader.dataset.data_prefix': prefix for s in ('val', 'test')}
    return all_of(make, settings(options))


def _many(value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(pixels: np.ndarray) -> np.ndarray:
        wide = pixels.astype(np.uint16)
        wide[:3] = value
        return wide

    return change


DAMAGED = {
    # Files
    'a folder in place of a mask': (_mask(as_folder), '000003.png (a folder)'),
    'a mask that is a broken link': (_mask(dangling), '000003.png (a broken link)'),
    'a folder in place of an image': (file_of(as_folder), 'masks without an image: 000003.png'),
    'an image that is a broken link': (file_of(dangling), 'masks without an image: 000003.png'),
    'an empty mask': (_mask(lambda file: file.write_bytes(b'')), '000003.png (not an image)'),
    'an image that EXIF turns by 180 degrees': (
        file_of(with_exif(3)),
        '1 of 16 images rotated or mirrored',
    ),
    'an image that EXIF mirrors': (file_of(with_exif(4)), '1 of 16 images rotated or mirrored'),
    'a mask for a smaller image': (
        _mask(_pixels(lambda pixels: pixels[::2, ::2])),
        'masks not the size of their images',
    ),
    'a turned mask': (_mask(_pixels(np.rot90)), 'masks not the size of their images'),
    # Lists
    'a name listed twice': (_list('000001', '000002', '000001'), 'listed more than once'),
    'a name in two spellings': (_list('000001', './000001'), 'listed more than once'),
    'a list with a blank line': (_list('000001', '', '000002'), '1 of 3 images not found'),
    'a list with a byte order mark': (_list('\ufeff000001', '000002'), '1 of 2 images not found'),
    'a list of images and masks': (
        _list('000001.jpg 000001.png', '000002.jpg 000002.png'),
        '2 of 2 images not found',
    ),
    'val is a link to train': (
        _val_is('linked', lambda demo: (demo.folder / 'linked').symlink_to('train')),
        '16 of 16 images also trained on',
    ),
    'val is a copy of train': (
        _val_is('copy', lambda demo: shutil.copytree(demo.folder / 'train', demo.folder / 'copy')),
        'images also trained on',
    ),
    # Values
    '65535 for ignored pixels': (
        _masks(_pixels(_many(65535))),
        'values that do not fit into 8 bits',
    ),
    '256 classes and more': (_mask(_pixels(_many(300))), 'values that do not fit into 8 bits'),
    'integers of 32 bits': (
        _as_suffix('.tif', lambda p, f: _saved(np.int32)(p.astype(int) * 1000, f)),
        'values that do not fit into 8 bits',
    ),
    'probabilities': (
        _as_suffix('.tif', lambda p, f: _saved(np.float32)(p / 7, f)),
        'values that do not fit into 8 bits',
    ),
    'negative values': (
        _as_suffix('.tif', lambda p, f: _saved(np.int32)(p.astype(int) - 1, f)),
        'values that do not fit into 8 bits: ',
    ),
    'masks saved as JPEG': (_as_suffix('.jpg', _saved(np.uint8)), '16 of 16 masks are JPEGs'),
    'JPEGs named PNG': (
        _masks(_pixels(lambda pixels: pixels, format='JPEG')),
        '16 of 16 masks are JPEGs',
    ),
    'greys of 4 bits': (_masks(_greys_of(4)), 'grey masks of fewer than 8 bits'),
    'greys of 2 bits': (_mask(_greys_of(2)), '1 of 16 grey masks of fewer than 8 bits'),
    'grey and alpha': (_mask(converted('LA', 'PNG')), '000003.png (LA)'),
    'colours and alpha': (_masks(converted('RGBA', 'PNG')), '(RGBA)'),
    'colours, smoothed': (
        _mask(
            lambda file: (
                _palette(8)(file),
                Image.open(file).convert('RGB').resize(Image.open(file).size, 2).save(file),
            )
        ),
        '000003.png (RGB)',
    ),
    'edges that were smoothed': (
        _mask(_pixels(lambda p: np.array(Image.fromarray(p * 50).resize(p.shape[::-1], 2)))),
        'values that are not classes',
    ),
    '254 for ignored pixels': (
        _mask(_pixels(lambda pixels: np.pad(pixels[3:], ((3, 0), (0, 0)), constant_values=254))),
        'values that are not classes',
    ),
    'the image in place of its mask': (
        lambda demo: shutil.copy(demo.image('train', 3), demo.mask('train', 3)),
        'with several channels',
    ),
    'Cityscapes ids': (_masks(_pixels(lambda pixels: pixels + 7)), 'values that are not classes'),
    'masks of 0 alone': (
        _masks(_pixels(lambda pixels: pixels * 0)),
        'no pixel of ball, coin, crate, cup',
    ),
    'objects that are 255': (
        _masks(_pixels(lambda pixels: np.where(pixels, 255, 0).astype(np.uint8))),
        'as if black and white',
    ),
    'val from 1 on, train from 0': (
        lambda demo: demo.redraw(demo.masks('val'), lambda pixels: pixels + 1),
        'val and test: ',
    ),
    'numbers of objects in place of classes': (
        _masks(_pixels(lambda p: p * 3 + np.arange(p.shape[1], dtype=np.uint8) // 50)),
        'values that are not classes',
    ),
    'a class too many': (
        _of_classes('background', 'ball', 'coin', 'crate', 'cup', 'more'),
        'no pixel of more',
    ),
    'background alone in val': (
        lambda demo: demo.redraw(demo.masks('val'), lambda pixels: pixels * 0),
        'val and test: no pixel of ball',
    ),
    'a mask of a pixel more': (
        _mask(_pixels(lambda pixels: np.pad(pixels, ((0, 0), (0, 1))))),
        'masks not the size of their images',
    ),
    'images in place of all masks': (
        lambda demo: demo.set(
            data_prefix=dict(img_path='train', seg_map_path='train'), seg_map_suffix='.jpg'
        ),
        '16 of 16 masks with several channels',
    ),
    # Settings
    'a std of 0': (settings({'model.data_preprocessor.std': [0, 1, 1]}), 'images are divided by'),
    'indices that leave nothing': (lambda demo: demo.set(indices=0), 'indices=0 leaves no image'),
}
"""Planted faults, and words that the findings must contain. All are found."""


def _only_first_files(demo: MaskDemo) -> None:
    for number in range(9, 17):
        demo.image('train', number).unlink()
        demo.mask('train', number).unlink()
    names = (demo.folder / 'all.txt', [f'{n:06d}' for n in range(1, 17)])
    names[0].write_text('\n'.join(names[1]))
    demo.set(ann_file='all.txt', indices=8)


def _linked(demo: MaskDemo) -> None:
    for file in (demo.mask('train', 3), demo.image('train', 3)):
        file.rename(file.with_suffix('.bin'))
        file.symlink_to(file.with_suffix('.bin').name)


def _in_folders(demo: MaskDemo) -> None:
    for number in range(1, 17):
        for file in (demo.image('train', number), demo.mask('train', number)):
            (file.parent / 'city').mkdir(exist_ok=True)
            file.rename(file.parent / 'city' / file.name)


CORRECT = {
    'palettes of 4 bits': _masks(_palette(4)),
    'palettes of 8 bits': _masks(_palette(8)),
    'palettes of 2 bits': all_of(_masks(_palette(2)), _of_classes('background', 'a', 'b', 'c')),
    'palettes of 1 bit': all_of(_masks(_palette(1)), _of_classes('background', 'a')),
    'a palette with a transparent colour': _masks(_palette(4, transparency=0)),
    'TIFF': _as_suffix('.tif', _saved(np.uint8)),
    'TIFF with LZW': _as_suffix('.tif', _saved(np.uint8, compression='tiff_lzw')),
    'BMP': _as_suffix('.bmp', _saved(np.uint8)),
    'the first 8 of 16 images': _only_first_files,
    'images and masks that are links': _linked,
    'a folder for each city': _in_folders,
    'a list with the line ends of Windows': _list('000001', '000002', '000003', ending='\r\n'),
    'a grey image': file_of(converted('L', 'JPEG')),
    'an image in CMYK': file_of(converted('CMYK', 'JPEG')),
    'an image with alpha': file_of(converted('RGBA', 'PNG')),
    'EXIF that turns nothing': file_of(with_exif(1)),
    'all images in batches': settings({TRAIN_SET + 'serialize_data': False}),
    '255 at the edges': _masks(
        _pixels(lambda p: np.pad(p[3:-3, 3:-3], 3, constant_values=255).astype(np.uint8))
    ),
}
"""Unusual but correct data: nothing is found."""


def _masks_of_others(demo: MaskDemo) -> None:
    """Swap two masks of the same size."""
    sizes = {}
    for file in demo.masks('train'):
        other = sizes.setdefault(Image.open(file).size, file)
        if other != file:
            other.rename(file.with_suffix('.tmp'))
            file.rename(other)
            file.with_suffix('.tmp').rename(file)
            return
    raise AssertionError('no two images of the demo set have one size')


MISSED = {
    'masks of two images swapped': _masks_of_others,
    'two classes swapped': _masks(_pixels(lambda p: np.array([0, 2, 1, 3, 4], np.uint8)[p])),
    'a mirrored mask': _mask(_pixels(np.fliplr)),
    'masks moved by 10 pixels': _masks(_pixels(lambda p: np.roll(p, 10, axis=1))),
}
"""Faults that only images and masks together would show."""
