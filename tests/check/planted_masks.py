"""Faults of a segmenter's data that occur in real exports, and unusual but correct data."""

import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.utils.findings import Severity

from .spoilt import (
    POSTSCRIPT,
    TRAIN_SET,
    MaskDemo,
    Plant,
    all_of,
    as_folder,
    converted,
    dangling,
    file_of,
    listed,
    settings,
    with_exif,
)

ERROR, WARNING = Severity.ERROR, Severity.WARNING

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
    'a folder in place of a mask': (_mask(as_folder), ERROR, 'train', '000003.png'),
    'a mask that is a broken link': (_mask(dangling), ERROR, 'train', '000003.png'),
    'a folder in place of an image': (file_of(as_folder), WARNING, 'train', '000003.png'),
    'an image that EXIF turns by 180 degrees': (
        file_of(with_exif(3)), WARNING, 'train', '000003.jpg'
    ),
    # Lists
    'a name in two spellings': (listed('000001', './000001'), WARNING, 'train', '000001.jpg'),
    'a list with a blank line': (listed('000001', '', '000002'), ERROR, 'train', '1 of 3 images'),
    'a list with a byte order mark': (
        listed('\ufeff000001', '000002'), ERROR, 'train', r'\ufeff000001.jpg'
    ),
    'val is a copy of train': (
        _val_is('copy', lambda demo: shutil.copytree(demo.folder / 'train', demo.folder / 'copy')),
        WARNING, 'val and test', '16 of 16 images',
    ),
    # Values
    '65535 for ignored pixels': (
        _masks(_pixels(_many(65535))), ERROR, 'train', '000001.png (65535)'
    ),
    'probabilities': (
        _as_suffix('.tif', lambda p, f: _saved(np.float32)(p / 7, f)),
        ERROR, 'train', '000001.tif (0.14285',
    ),
    'negative values': (
        _as_suffix('.tif', lambda p, f: _saved(np.int32)(p.astype(int) - 1, f)),
        ERROR, 'train', '000001.tif (-1)',
    ),
    'JPEGs named PNG': (
        _masks(_pixels(lambda pixels: pixels, format='JPEG')), ERROR, 'train', '16 of 16 masks'
    ),
    'greys with alpha': (
        _mask(lambda file: Image.open(file).convert('LA').save(file)), ERROR, 'train', '(LA)'
    ),
    'PostScript, which is not run': (
        _mask(lambda file: file.write_bytes(POSTSCRIPT)), ERROR, 'train', 'not an image'
    ),
    'greys of 4 bits': (_masks(_greys_of(4)), ERROR, 'train', '16 of 16'),
    'val from 1 on, train from 0': (
        lambda demo: demo.redraw(demo.masks('val'), lambda pixels: pixels + 1),
        ERROR, 'val and test', '000003.png (5)',
    ),
    'background alone in val': (
        lambda demo: demo.redraw(demo.masks('val'), lambda pixels: pixels * 0),
        WARNING, 'val and test', 'ball, coin, crate, cup',
    ),
    # Settings
    'indices that leave nothing': (lambda demo: demo.set(indices=0), ERROR, 'train', 'indices=0'),
}  # fmt: skip
"""Planted faults; the severity and the subject of the finding, and a value that it names."""


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
    'palettes of 1 bit': all_of(_masks(_palette(1)), _of_classes('background', 'a')),
    'a palette with a transparent colour': _masks(_palette(4, transparency=0)),
    'TIFF': _as_suffix('.tif', _saved(np.uint8)),
    'TIFF with LZW': _as_suffix('.tif', _saved(np.uint8, compression='tiff_lzw')),
    'BMP': _as_suffix('.bmp', _saved(np.uint8)),
    'the first 8 of 16 images': _only_first_files,
    'images and masks that are links': _linked,
    'a folder for each city': _in_folders,
    'a list with the line ends of Windows': listed('000001', '000002', '000003', ending='\r\n'),
    'an image in CMYK': file_of(converted('CMYK', 'JPEG')),
    'an image with alpha': file_of(converted('RGBA', 'PNG')),
    'EXIF that turns nothing': file_of(with_exif(1)),
    'all images in batches': settings({TRAIN_SET + 'serialize_data': False}),
    '255 at the edges': _masks(
        _pixels(lambda p: np.pad(p[3:-3, 3:-3], 3, constant_values=255).astype(np.uint8))
    ),
}  # fmt: skip
"""Unusual but correct data: nothing is found."""
