"""Faults of a detector's data that occur in real exports, and unusual but correct data."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from pycocotools import mask as coco

from .spoilt import (
    TRAIN_SET,
    Demo,
    Plant,
    all_of,
    as_folder,
    converted,
    dangling,
    file_of,
    own,
    settings,
    with_exif,
)


def _each(kind: str, change: Callable[[dict, dict], object], split: str = 'train') -> Plant:
    """Change every entry of a kind; for annotations, the change also gets the image."""

    def plant(demo: Demo) -> None:
        def spoil(content: dict) -> None:
            images = {image['id']: image for image in content['images']}
            for entry in content[kind]:
                change(entry, images.get(entry.get('image_id'), entry))

        demo.edit(split, spoil)

    return plant


def _everywhere(kind: str, change: Callable[[dict, dict], object]) -> Plant:
    return all_of(_each(kind, change), _each(kind, change, 'val'))


def _second(kind: str, split: str = 'train', **changes: object) -> Plant:
    return lambda demo: demo.edit(split, lambda content: content[kind][1].update(changes))


def _text(change: Callable[[str], bytes]) -> Plant:
    """Change the bytes of the annotation file."""

    def plant(demo: Demo) -> None:
        file = demo.file('train')
        file.write_bytes(change(file.read_text()))

    return plant


def _resaved(**how: object) -> Callable[[Path], None]:
    return lambda file: Image.open(file).save(file, **how)


def _turned_square(demo: Demo) -> None:
    file = demo.image('train', 3)
    Image.open(file).resize((160, 160)).save(file)
    with_exif(6)(file)
    size = dict(width=160, height=160)
    demo.edit('train', lambda content: content['images'][2].update(size))
    drop = lambda content: content.update(  # noqa: E731
        annotations=[a for a in content['annotations'] if a['image_id'] != 3]
    )
    demo.edit('train', drop)


def _listed_again(name: str) -> Plant:
    def add(content: dict) -> None:
        content['images'].append(dict(content['images'][0], id=900, file_name=name))
        first = next(a for a in content['annotations'] if a['image_id'] == 1)
        content['annotations'].append(dict(first, id=9000, image_id=900))

    return lambda demo: demo.edit('train', add)


def _beside(make: Callable[[Path, Path], object], name: str) -> Plant:
    """Put another name next to the first image, and list it, too."""
    return all_of(
        lambda demo: make(demo.image('train', 1), demo.image('train', 1).with_name(name)),
        _listed_again(name),
    )


def _val_of(folder: str, make: Callable[[Path, Path], object]) -> Plant:
    """Evaluate on the training images, copied to another folder."""

    def plant(demo: Demo) -> None:
        make(demo.folder / 'train', demo.folder / folder)
        shutil.copy(demo.file('train'), demo.file('val'))
        for split in ('val', 'test'):
            demo.options[f'{split}_dataloader.dataset.data_prefix.img'] = folder

    return plant


def _copied_image_in_val(demo: Demo) -> None:
    shutil.copy(demo.image('train', 1), demo.image('val', 9))
    size = Image.open(demo.image('val', 9)).size
    image = dict(id=9, file_name='000009.jpg', width=size[0], height=size[1])
    demo.edit('val', lambda content: content['images'].append(image))


def _scaled(entry: dict, image: dict, width: float, height: float) -> None:
    x, y, w, h = entry['bbox']
    across, down = width / image['width'], height / image['height']
    entry['bbox'] = [x * across, y * down, w * across, h * down]


def _centred(entry: dict, image: dict) -> None:
    x, y, w, h = entry['bbox']
    entry['bbox'] = [x + w / 2, y + h / 2, w, h]


def _rows_first(entry: dict, image: dict) -> None:
    x, y, w, h = entry['bbox']
    entry['bbox'] = [y, x, h, w]


def _swapped(image: dict, _: dict) -> None:
    image.update(width=image['height'], height=image['width'])


def _repeated(content: dict) -> None:
    again = [dict(entry, id=entry['id'] + 5000) for entry in content['annotations']]
    content['annotations'] += again


def _numbered_from_0(demo: Demo) -> None:
    """Annotations count categories from 0, the list of categories from 1."""
    _each('annotations', lambda a, _: a.update(category_id=a['category_id'] - 1))(demo)


def _of_other_images(demo: Demo) -> None:
    """The annotations of val for the images of train."""
    shutil.copy(demo.file('val'), demo.file('train'))


def _without_annotations(content: dict) -> None:
    del content['annotations']


DAMAGED = {
    # Annotation files
    'a trailing comma': (_text(lambda text: text.replace(']}', '],}').encode()), 'is not JSON'),
    'a byte order mark': (_text(lambda text: b'\xef\xbb\xbf' + text.encode()), 'is not JSON'),
    'Windows-1252': (
        _text(lambda text: text.replace('"coin"', '"münze"').encode('cp1252')),
        'is not JSON',
    ),
    'JSON lines': (_text(lambda text: (text + '\n' + text).encode()), 'is not JSON'),
    'an empty file': (_text(lambda text: b''), 'is not JSON'),
    'labelme in place of COCO': (
        _text(lambda text: json.dumps(dict(version='5', shapes=[], imagePath='a.jpg')).encode()),
        "not in COCO's format",
    ),
    'a folder of annotations': (
        own(ann_file='annotations'),
        'annotations cannot be read: Is a directory',
    ),
    'the annotations of val': (_of_other_images, 'not of the annotated size'),
    # Images
    'a folder in place of an image': (file_of(as_folder), '000003.jpg (a folder)'),
    'a broken link': (file_of(dangling), '000003.jpg (a broken link)'),
    'an empty image': (file_of(lambda file: file.write_bytes(b'')), '000003.jpg (not an image)'),
    'HEIC named JPEG': (
        file_of(lambda file: file.write_bytes(b'\0\0\0\x18ftypheic' + bytes(500))),
        '000003.jpg (not an image)',
    ),
    'an image that only Pillow reads': (
        # A TIFF of 32-bit numbers.
        file_of(lambda file: Image.open(file).convert('I').save(file, format='TIFF')),
        'LoadImageFromFile fails',
    ),
    'a page of HTML': (
        file_of(lambda file: file.write_text('<html>404</html>')),
        '000003.jpg (not an image)',
    ),
    'turned by 180 degrees': (file_of(with_exif(3)), '1 of 16 images rotated or mirrored'),
    'mirrored': (file_of(with_exif(2)), '1 of 16 images rotated or mirrored'),
    'square and turned': (_turned_square, '1 of 16 images rotated or mirrored'),
    'resized images': (
        file_of(lambda file: Image.open(file).resize((64, 64)).save(file)),
        'not of the annotated size',
    ),
    'backslashes': (
        _each('images', lambda i, _: i.update(file_name='train\\' + i['file_name'])),
        'there is 000001.jpg instead of the first',
    ),
    "another machine's paths": (
        _each('images', lambda i, _: i.update(file_name='/mnt/d/' + i['file_name'])),
        '16 of 16 images not found',
    ),
    'addresses in place of names': (
        _each('images', lambda i, _: i.update(file_name='https://h/' + i['file_name'])),
        '16 of 16 images not found',
    ),
    'letters of another case': (
        _each('images', lambda i, _: i.update(file_name=i['file_name'].replace('jpg', 'JPG'))),
        'there is 000001.jpg instead of the first',
    ),
    'width and height swapped': (_each('images', _swapped), 'not of the annotated size'),
    # Images that are listed twice
    'two spellings': (_listed_again('./000001.jpg'), 'listed more than once'),
    'a detour': (_listed_again('../train/000001.jpg'), 'listed more than once'),
    'a second link': (_beside(lambda a, b: b.symlink_to(a), 'link.jpg'), 'listed more than once'),
    'a second case': (_beside(shutil.copy, '000001.JPG'), 'listed more than once'),
    'a hard link': (_beside(lambda a, b: os.link(a, b), 'hard.jpg'), 'listed more than once'),
    'val is a link to train': (
        _val_of('linked', lambda a, b: b.symlink_to(a)),
        '16 of 16 images also trained on',
    ),
    'val is train by a detour': (
        _val_of('val/../train', lambda a, b: None),
        '16 of 16 images also trained on',
    ),
    'val is a copy of train': (_val_of('copied', shutil.copytree), 'images also trained on'),
    'an image of train in val': (_copied_image_in_val, '1 of 9 images also trained on'),
    # Objects
    'iscrowd as text': (
        _each('annotations', lambda a, _: a.update(iscrowd='0')),
        "for their iscrowd: '0' for id 1",
    ),
    'one iscrowd as text': (_second('annotations', iscrowd='false'), 'mmdet ignores 1 of'),
    'everything a crowd': (
        _each('annotations', lambda a, _: a.update(iscrowd=1)),
        'objects are crowds, which mmdet ignores',
    ),
    'ignore as text': (_second('annotations', ignore='0'), 'mmdet skips 1 of'),
    'everything to be ignored': (
        _each('annotations', lambda a, _: a.update(ignore=1)),
        'have "ignore", and mmdet skips them',
    ),
    'boxes in percent': (
        _each('annotations', lambda a, i: _scaled(a, i, 100, 100)),
        'they may be in percent',
    ),
    'boxes as fractions of one': (
        _each('annotations', lambda a, i: _scaled(a, i, 1, 1)),
        'are between 0 and 1, as fractions',
    ),
    'one box as fractions': (
        _second('annotations', bbox=[0.1, 0.2, 0.3, 0.4]),
        'boxes less than 1 pixel wide or high: id 2',
    ),
    'boxes of half the size': (
        _each('annotations', lambda a, i: _scaled(a, i, i['width'] / 2, i['height'] / 2)),
        'they may be of smaller images',
    ),
    'boxes of twice the size': (
        _each('annotations', lambda a, i: _scaled(a, i, i['width'] * 2, i['height'] * 2)),
        'boxes outside of their images',
    ),
    'boxes by their centre': (_each('annotations', _centred), 'partly outside their images'),
    'boxes with rows first': (_each('annotations', _rows_first), 'of their images'),
    'a box as text': (_second('annotations', bbox=['1', '2', '3', '4']), "without a usable 'bbox'"),
    'a box of infinite width': (
        _second('annotations', bbox=[1, 2, float('inf'), 4]),
        'boxes not finite: id 2',
    ),
    'a box that is null': (_second('annotations', bbox=None), "without a usable 'bbox'"),
    'an area that is NaN': (
        _second('annotations', 'val', area=float('nan')),
        'areas that do not match the boxes in pixels: id 2',
    ),
    'areas as fractions': (
        _each(
            'annotations', lambda a, i: a.update(area=a['area'] / i['width'] / i['height']), 'val'
        ),
        'areas that do not match the boxes in pixels',
    ),
    'objects listed twice': (lambda demo: demo.edit('train', _repeated), 'objects listed twice'),
    'categories from 0': (_numbered_from_0, 'whose category_id is not in the file: 0'),
    'category_id as text': (
        _each('annotations', lambda a, _: a.update(category_id=str(a['category_id']))),
        'not as text',
    ),
    'category names in place of ids': (
        _second('annotations', category_id='coin'),
        "category_id is not in the file: 'coin'",
    ),
    'image_id is a file name': (
        _each('annotations', lambda a, i: a.update(image_id=i['file_name'])),
        'image_id is not in the file',
    ),
    'all annotations have one id': (
        _each('annotations', lambda a, _: a.update(id=1)),
        'ids of several annotations: 1',
    ),
    'a separate category for each export': (
        lambda demo: demo.edit(
            'train', lambda c: c['categories'].insert(0, dict(id=99, name='ball'))
        ),
        'several categories',
    ),
    'names with a blank': (
        _everywhere('categories', lambda c, _: c.update(name=c['name'] + ' ')),
        'names that are not categories of',
    ),
    'boxes as dicts': (
        _second('annotations', bbox=dict(x=1, y=2, width=30, height=40)),
        "without a usable 'bbox'",
    ),
    'boxes of four corners': (
        _second('annotations', bbox=[1, 2, 30, 2, 30, 40, 1, 40]),
        "without a usable 'bbox'",
    ),
    'iscrowd of 2': (_second('annotations', iscrowd=2), 'mmdet ignores 1 of'),
    'a category of -1': (_second('annotations', category_id=-1), 'not in the file: -1'),
    'sizes as text': (
        _each('images', lambda i, _: i.update(width=str(i['width']))),
        "images without a usable 'width'",
    ),
    'sizes of 0': (
        _each('images', lambda i, _: i.update(width=0, height=0)),
        "images without a usable 'height'",
    ),
    'images without names': (_second('images', file_name=None), "without a usable 'file_name'"),
    'two images of one id': (_second('images', id=1), 'ids of several images: 1'),
    'names of val in another case': (
        _each('categories', lambda c, _: c.update(name=c['name'].upper()), 'val'),
        'names that are not categories of',
    ),
    'a file without categories': (
        lambda demo: demo.edit('train', lambda content: content.pop('categories')),
        'it has no list categories',
    ),
    'a JPEG of zeros from its middle on': (
        file_of(
            lambda f: f.write_bytes(
                f.read_bytes()[: f.stat().st_size // 2] + bytes(f.stat().st_size // 2)
            )
        ),
        '1 of 16 images not readable',
    ),
    'placeholders of a pixel': (
        file_of(lambda file: Image.new('RGB', (1, 1)).save(file)),
        'not of the annotated size',
    ),
    'all images of val are one': (
        lambda demo: [shutil.copy(demo.image('val', 1), demo.image('val', n)) for n in (2, 3, 4)],
        'images listed more than once',
    ),
    # Settings
    'a std of 0': (
        settings({'model.data_preprocessor.std': [127.5, 0, 127.5]}),
        'images are divided by it',
    ),
    'a std of text': (
        settings({'model.data_preprocessor.std': [127.5, float('nan'), 127.5]}),
        'images are divided by it',
    ),
    'indices that leave nothing': (own(indices=0), 'none of 16 images is left'),
    'indices of images that are measured': (
        settings({f'{s}_dataloader.dataset.indices': 4 for s in ('val', 'test')}),
        '4 of the 8 images of',
    ),
    'nothing annotated in val': (
        lambda demo: demo.edit('val', _without_annotations),
        'there is nothing to measure: every precision will be -1',
    ),
    'indices beyond the end': (own(indices=[0, 99]), 'the data set cannot be built'),
}
"""Planted faults, and words that the findings must contain. All are found."""


def _run_lengths_of(change: Callable[[np.ndarray], dict]) -> Plant:
    """Give the second object run lengths that are made from the pixels of its image, all 0."""

    def plant(demo: Demo) -> None:
        def spoil(content: dict) -> None:
            entry = content['annotations'][1]
            image = next(i for i in content['images'] if i['id'] == entry['image_id'])
            pixels = np.zeros((image['height'], image['width']), np.uint8)
            x, y, w, h = map(round, entry['bbox'])
            pixels[y : y + h, x : x + w] = 1
            entry['segmentation'] = change(pixels)

        demo.edit('train', spoil)

    return plant


def _compressed(pixels: np.ndarray) -> dict:
    encoded = coco.encode(np.asfortranarray(pixels))
    return dict(size=encoded['size'], counts=encoded['counts'].decode())


def _plain(pixels: np.ndarray) -> dict:
    flat = pixels.ravel(order='F')
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat]))).tolist()
    counts = np.diff([0, *edges, flat.size]).tolist()
    return dict(size=list(pixels.shape), counts=counts)


def _polygon(change: Callable[[np.ndarray, dict], list]) -> Plant:
    """Change the polygons of all objects, (N, 2) points each."""

    def spoil(entry: dict, image: dict) -> None:
        polygons = (np.array(p).reshape(-1, 2) for p in entry['segmentation'])
        entry['segmentation'] = [change(points, image) for points in polygons]

    return _each('annotations', spoil)


def _flat(points: np.ndarray) -> list:
    return points.ravel().tolist()


NAN = float('nan')

MASKS = {
    'polygons as fractions': (
        _polygon(lambda p, i: _flat(p / (i['width'], i['height']))),
        'masks without a pixel',
    ),
    'polygons in percent': (
        _polygon(lambda p, i: _flat(p * 100 / (i['width'], i['height']))),
        'masks not where their boxes are',
    ),
    'polygons with NaN': (
        _second('annotations', segmentation=[[1, 2, 3, NAN, 5, 6]]),
        'a polygon is not finite',
    ),
    'polygons as text': (
        _second('annotations', segmentation='[[1, 2, 3, 4, 5, 6]]'),
        'masks that cannot be drawn: id 2',
    ),
    'polygons of text': (
        _second('annotations', segmentation=[['1', '2', '30', '4', '5', '60']]),
        'a polygon is not a list of numbers',
    ),
    'polygons of points': (_polygon(lambda p, i: p.tolist()), 'masks that cannot be drawn'),
    'a polygon without its list': (
        _second('annotations', segmentation=[10, 20, 30, 40, 50, 60]),
        'polygons of fewer than 3 points: id 2',
    ),
    'polygons with y before x': (
        _polygon(lambda p, i: _flat(p[:, ::-1])),
        'masks not where their boxes are',
    ),
    'a polygon of no area': (
        _second('annotations', segmentation=[[500, 500, 501, 501, 502, 502]]),
        'masks without a pixel',
    ),
    'a polygon far away': (
        _second('annotations', segmentation=[[1e9, 2, 3, 4, 5, 1e9]]),
        'a polygon is far outside',
    ),
    'the polygon of another object': (
        _polygon(lambda p, i: _flat((i['width'], i['height']) - p)),
        'masks not where their boxes are',
    ),
    'boxes in place of polygons': (
        _each('annotations', lambda a, _: a.update(segmentation=[a['bbox']])),
        'polygons of fewer than 3 points',
    ),
    'run lengths as floats': (
        _run_lengths_of(
            lambda pixels: dict(_plain(pixels), counts=[c + 0.5 for c in _plain(pixels)['counts']])
        ),
        'masks that cannot be drawn: id 2',
    ),
    'empty run lengths': (
        _run_lengths_of(lambda pixels: dict(_plain(pixels), counts=[])),
        'it counts 0 pixels',
    ),
    'empty text for run lengths': (
        _run_lengths_of(lambda pixels: dict(_plain(pixels), counts='')),
        'it counts 0 pixels',
    ),
    'run lengths that end early': (
        _run_lengths_of(lambda pixels: dict(_plain(pixels), counts=_plain(pixels)['counts'][:-1])),
        'masks that cannot be drawn: id 2',
    ),
    'compressed run lengths that end early': (
        _run_lengths_of(
            lambda pixels: dict(_compressed(pixels), counts=_compressed(pixels)['counts'][:-3])
        ),
        'masks that cannot be drawn: id 2',
    ),
    'run lengths without counts': (
        _run_lengths_of(lambda pixels: dict(size=list(pixels.shape))),
        'mmdet ignores it',
    ),
    'run lengths of the turned image': (
        _run_lengths_of(lambda pixels: _plain(pixels.T)),
        'masks not the size of their images: id 2',
    ),
    'run lengths by rows': (
        _run_lengths_of(lambda pixels: dict(_plain(pixels.T), size=list(pixels.shape))),
        'masks not where their boxes are: id 2',
    ),
    'run lengths of no pixel': (
        _run_lengths_of(lambda pixels: _plain(pixels * 0)),
        'masks without a pixel: id 2',
    ),
    'run lengths of the whole image': (
        _run_lengths_of(lambda pixels: _plain(pixels * 0 + 1)),
        'masks not where their boxes are: id 2',
    ),
    'run lengths for polygons alone': (
        all_of(_run_lengths_of(_plain), settings({TRAIN_SET + 'pipeline.1.poly2mask': False})),
        'mmdet ignores it',
    ),
}
"""The same for object masks and a model with a mask head."""


def _only_first_files(count: int) -> Plant:
    def plant(demo: Demo) -> None:
        for number in range(count + 1, 17):
            demo.image('train', number).unlink()

    return plant


def _format_only(demo: Demo) -> None:
    for split in ('val', 'test'):
        demo.options |= {
            f'{split}_evaluator.format_only': True,
            f'{split}_evaluator.outfile_prefix': 'out/demo',
        }
    demo.edit('val', _without_annotations)


def _absolute(demo: Demo) -> None:
    _each('images', lambda i, _: i.update(file_name=str(demo.folder / 'train' / i['file_name'])))(
        demo
    )


def _one_by_one_folders(demo: Demo) -> None:
    for number in range(1, 17):
        file = demo.image('train', number)
        (file.parent / str(number)).mkdir()
        file.rename(file.parent / str(number) / file.name)
    _each('images', lambda i, _: i.update(file_name=f'{i["id"]}/{i["file_name"]}'))(demo)


def _as_text_ids(demo: Demo) -> None:
    _everywhere('images', lambda i, _: i.update(id=f'img{i["id"]}'))(demo)
    for split in ('train', 'val'):
        demo.edit(
            split, lambda c: [a.update(image_id=f'img{a["image_id"]}') for a in c['annotations']]
        )


def _turned_and_annotated_so(demo: Demo) -> None:
    """Stored on its side; annotated upright."""
    file = demo.image('train', 3)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(file).transpose(Image.Transpose.ROTATE_90).save(file, exif=exif)


def _joined(demo: Demo) -> None:
    """Two files over the same images, each with different objects."""
    inner = demo.config().train_dataloader.dataset.to_dict()
    shutil.copy(demo.file('train'), demo.file('train').with_name('second.json'))
    second = dict(inner, ann_file='annotations/second.json')
    _set_train(demo, type='ConcatDataset', datasets=[inner, second])


def _set_train(demo: Demo, **data_set: object) -> None:
    """Train on another data set, which contains the path of its folder."""
    demo.settings = lambda: {
        **{k: v for k, v in Demo.settings(demo).items() if not k.startswith(TRAIN_SET)},
        'train_dataloader.dataset': dict(_delete_=True, **data_set),
    }


def _wrapped(demo: Demo) -> None:
    """List the first 8 of 16 images twice, and remove the others."""
    inner = dict(demo.config().train_dataloader.dataset.to_dict(), indices=8)
    joined = dict(type='ConcatDataset', datasets=[inner])
    _only_first_files(8)(demo)
    _set_train(demo, type='RepeatDataset', times=2, dataset=joined)


CORRECT = {
    'the first 8 of 16 images': all_of(own(indices=8), _only_first_files(8)),
    'some of 16 images': all_of(own(indices=[0, 2, 4]), _only_first_files(5)),
    'val without annotations that only writes results': _format_only,
    'absolute paths': _absolute,
    'a folder for each image': _one_by_one_folders,
    'images that are links': file_of(
        lambda file: (file.rename(file.with_name('x.bin')), file.symlink_to('x.bin'))
    ),
    'ids of images as text': _as_text_ids,
    'ids as floats': _everywhere(
        'annotations',
        lambda a, _: a.update(image_id=float(a['image_id']), category_id=float(a['category_id'])),
    ),
    'category 0': lambda demo: demo.edit_both(
        lambda c: (
            [x.update(id=x['id'] - 1) for x in c['categories']],
            [a.update(category_id=a['category_id'] - 1) for a in c['annotations']],
        )
    ),
    'categories with gaps': lambda demo: demo.edit_both(
        lambda c: (
            [x.update(id=x['id'] * 10) for x in c['categories']],
            [a.update(category_id=a['category_id'] * 10) for a in c['annotations']],
        )
    ),
    'indices in wrappers': _wrapped,
    'no info and no licences': lambda demo: demo.edit_both(
        lambda c: (c.pop('info', None), c.pop('licenses', None))
    ),
    'keys of others': _everywhere('annotations', lambda a, _: a.update(attributes={'a': 1})),
    'sizes and boxes as floats': _everywhere(
        'images', lambda i, _: i.update(width=i['width'] * 1.0)
    ),
    'an image without objects': lambda demo: demo.edit(
        'train', lambda c: c.update(annotations=[a for a in c['annotations'] if a['image_id'] != 2])
    ),
    'two files over the same images': _joined,
    'a crowd': _each('annotations', lambda a, _: a.update(iscrowd=int(a['id'] == 2))),
    'iscrowd as true and false': _everywhere('annotations', lambda a, _: a.update(iscrowd=False)),
    'ignore': _second('annotations', ignore=1),
    'an image that EXIF turns, annotated as seen': _turned_and_annotated_so,
    'a grey image': file_of(converted('L', 'JPEG')),
    'an image in CMYK': file_of(converted('CMYK', 'JPEG')),
    'a PNG with alpha named JPEG': file_of(converted('RGBA', 'PNG')),
    'an image of 16 bits': file_of(converted('I;16', 'PNG')),
    'a progressive JPEG': file_of(_resaved(progressive=True)),
    'a WebP': file_of(converted('RGB', 'WEBP')),
    'EXIF that turns nothing': file_of(with_exif(1)),
    'train and val from one folder': all_of(
        lambda demo: [
            demo.image('val', n).rename(demo.image('train', 100 + n)) for n in range(1, 9)
        ],
        _each('images', lambda i, _: i.update(file_name=f'{100 + i["id"]:06d}.jpg'), 'val'),
        settings({f'{s}_dataloader.dataset.data_prefix.img': 'train/' for s in ('val', 'test')}),
    ),
}
"""Unusual but correct data: nothing is found."""

CORRECT_MASKS = {
    'run lengths': _run_lengths_of(_plain),
    'compressed run lengths': _run_lengths_of(_compressed),
    'two polygons': _each(
        'annotations',
        lambda a, _: a.update(segmentation=a['segmentation'] * 2) if a['id'] == 2 else None,
    ),
    'polygons of integers': _polygon(lambda p, _: _flat(p.round().astype(int))),
    'polygons that end where they begin': _polygon(lambda p, _: _flat(np.concatenate([p, p[:1]]))),
    'polygons that leave the image': _polygon(
        lambda p, i: _flat(np.where(p > p.max(axis=0) - 1, p + 1.5, p))
    ),
}
"""The same for object masks."""


def _moved(entry: dict, image: dict) -> None:
    x, y, w, h = entry['bbox']
    entry['bbox'] = [max(x - 15, 0), max(y - 15, 0), w, h]


def _labels_swapped(entry: dict, _: dict) -> None:
    entry['category_id'] = {1: 2, 2: 1}.get(entry['category_id'], entry['category_id'])


def _half_annotated(content: dict) -> None:
    content['annotations'] = content['annotations'][::2]


def _flipped(file: Path) -> None:
    Image.open(file).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(file)


def _val_is_resaved(demo: Demo) -> None:
    """The images of train, saved once more."""
    (demo.folder / 'again').mkdir()
    for file in (demo.folder / 'train').iterdir():
        Image.open(file).save(demo.folder / 'again' / file.name, quality=50)
    _val_of('again', lambda a, b: None)(demo)


MISSED = {
    'boxes moved by 15 pixels': _each('annotations', _moved),
    'two classes swapped': _everywhere('annotations', _labels_swapped),
    'half of the objects not annotated': lambda demo: demo.edit('train', _half_annotated),
    'an image mirrored after it was annotated': file_of(_flipped),
    'channels in a different order': file_of(
        lambda file: Image.merge('RGB', Image.open(file).split()[::-1]).save(file)
    ),
    'val is train, re-saved': _val_is_resaved,
    # Decoders fill the rest with grey.
    'a truncated JPEG with its end marker restored': file_of(
        lambda f: f.write_bytes(f.read_bytes()[: f.stat().st_size // 2] + b'\xff\xd9')
    ),
}
"""Faults that no check finds: most would need images and boxes together."""

MISSED_MASKS = {
    'a polygon with shuffled points': _polygon(
        lambda p, _: _flat(np.random.default_rng(0).permutation(p))
    )
}
"""The same for object masks."""
