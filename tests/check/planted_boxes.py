"""Faults of a detector's data that occur in real exports, and unusual but correct data."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from pycocotools import mask as coco

from ptnt_mm.utils.findings import Severity

from .spoilt import (
    POSTSCRIPT,
    TRAIN_SET,
    Demo,
    Plant,
    all_of,
    as_folder,
    changed,
    converted,
    dangling,
    file_of,
    own,
    settings,
    with_exif,
)

ERROR, WARNING = Severity.ERROR, Severity.WARNING


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


def _text(change: Callable[[str], bytes]) -> Plant:
    """Change the bytes of the annotation file."""

    def plant(demo: Demo) -> None:
        file = demo.file('train')
        file.write_bytes(change(file.read_text()))

    return plant


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


def _in_percent(entry: dict, image: dict) -> None:
    x, y, w, h = entry['bbox']
    across, down = 100 / image['width'], 100 / image['height']
    entry['bbox'] = [x * across, y * down, w * across, h * down]


def _repeated(content: dict) -> None:
    again = [dict(entry, id=entry['id'] + 5000) for entry in content['annotations']]
    content['annotations'] += again


def _without_annotations(content: dict) -> None:
    del content['annotations']


DAMAGED = {
    # Annotation files
    'a byte order mark': (
        _text(lambda text: b'\xef\xbb\xbf' + text.encode()),
        ERROR, 'annotation file', 'instances_train.json',
    ),
    'Windows-1252': (
        _text(lambda text: text.replace('"coin"', '"münze"').encode('cp1252')),
        ERROR, 'annotation file', 'instances_train.json',
    ),
    'a folder of annotations': (
        own(ann_file='annotations'), ERROR, 'annotation file', 'demo/annotations'
    ),
    # Images
    'a folder in place of an image': (file_of(as_folder), ERROR, 'train', '000003.jpg'),
    'PostScript, which is not run': (
        file_of(lambda file: file.write_bytes(POSTSCRIPT)), ERROR, 'train', 'not an image'
    ),
    'a broken link': (file_of(dangling), ERROR, 'train', '000003.jpg'),
    'an image that only Pillow reads': (
        # A TIFF of 32-bit numbers.
        file_of(lambda file: Image.open(file).convert('I').save(file, format='TIFF')),
        ERROR, 'train', '000003.jpg (LoadImageFromFile',
    ),
    'turned by EXIF, with boxes of the pixels as stored': (
        lambda demo: _turned_with_their_sizes(demo), ERROR, 'train', 'that EXIF data rotates',
    ),
    'turned by 180 degrees': (file_of(with_exif(3)), WARNING, 'train', '000003.jpg'),
    'backslashes': (
        _each('images', lambda i, _: i.update(file_name='train\\' + i['file_name'])),
        ERROR, 'train', 'train\\000001.jpg',
    ),
    "another machine's paths": (
        _each('images', lambda i, _: i.update(file_name='/mnt/d/' + i['file_name'])),
        ERROR, 'train', '/mnt/d/000001.jpg',
    ),
    # Images that are listed twice
    'two spellings': (_listed_again('./000001.jpg'), WARNING, 'train', '000001.jpg'),
    'a second case': (_beside(shutil.copy, '000001.JPG'), WARNING, 'train', '000001.JPG'),
    'a hard link': (_beside(lambda a, b: os.link(a, b), 'hard.jpg'), WARNING, 'train', 'hard.jpg'),
    'val is train by a detour': (
        _val_of('val/../train', lambda a, b: None), WARNING, 'val and test', '16 of 16 images'
    ),
    'val is a copy of train': (
        _val_of('copied', shutil.copytree), WARNING, 'val and test', '16 of 16 images'
    ),
    # Objects
    'one iscrowd as text': (
        changed('train', 'annotations', iscrowd='false'), ERROR, 'train', "'false' for id 2"
    ),
    'everything a crowd': (
        _each('annotations', lambda a, _: a.update(iscrowd=1)), ERROR, 'train', '58 of 58 objects'
    ),
    'ignore as text': (changed('train', 'annotations', ignore='0'), ERROR, 'train', "'0' for id 2"),
    'everything to be ignored': (
        _each('annotations', lambda a, _: a.update(ignore=1)), WARNING, 'train', '58 of 58 objects'
    ),
    'boxes in percent': (_each('annotations', _in_percent), WARNING, 'train', '51% of the width'),
    'a box as text': (
        changed('train', 'annotations', bbox=['1', '2', '3', '4']),
        ERROR, 'instances_train.json', "['1', '2', '3', '4'] in id 2",
    ),
    'areas as fractions': (
        _each(
            'annotations', lambda a, i: a.update(area=a['area'] / i['width'] / i['height']), 'val'
        ),
        WARNING, 'val and test', '32 of 32 areas',
    ),
    'objects listed twice': (
        lambda demo: demo.edit('train', _repeated), WARNING, 'train', '58 of 116 objects'
    ),
    'category_id as text': (
        _each('annotations', lambda a, _: a.update(category_id=str(a['category_id']))),
        ERROR, 'instances_train.json', "'3', '1', '4', '2'",
    ),
    'boxes of four corners': (
        changed('train', 'annotations', bbox=[1, 2, 30, 2, 30, 40, 1, 40]),
        ERROR, 'instances_train.json', '[1, 2, 30, 2, 30, 40, 1, 40] in id 2',
    ),
    'all annotations have one id': (
        _each('annotations', lambda a, _: a.update(id=1)), WARNING, 'train', '1 of 16 images'
    ),
    'sizes as text': (
        _each('images', lambda i, _: i.update(width=str(i['width']))),
        ERROR, 'instances_train.json', "'288' in 000001.jpg",
    ),
    'sizes of 0': (
        _each('images', lambda i, _: i.update(width=0, height=0)),
        ERROR, 'instances_train.json', '0 in 000001.jpg',
    ),
    'images without names': (
        changed('train', 'images', file_name=None), ERROR, 'instances_train.json', 'None in id 2'
    ),
    'a JPEG of zeros from its middle on': (
        file_of(
            lambda f: f.write_bytes(
                f.read_bytes()[: f.stat().st_size // 2] + bytes(f.stat().st_size // 2)
            )
        ),
        ERROR, 'train', '000003.jpg',
    ),
    # Settings
    'a std of 0': (
        settings({'model.data_preprocessor.std': [127.5, 0, 127.5]}),
        ERROR, 'model.data_preprocessor', '[127.5, 0, 127.5]',
    ),
    'indices that leave nothing': (own(indices=0), ERROR, 'train', 'indices=0'),
    'indices of images that are measured': (
        settings({f'{s}_dataloader.dataset.indices': 4 for s in ('val', 'test')}),
        WARNING, 'val', '4 of the 8 images',
    ),
    'nothing annotated in val': (
        lambda demo: demo.edit('val', _without_annotations),
        WARNING, 'val and test', '8 of 8 images',
    ),
    'indices beyond the end': (own(indices=[0, 99]), ERROR, 'train', 'index out of range'),
}  # fmt: skip
"""Planted faults; the severity and the subject of the finding, and a value that it names."""


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
    'polygons with NaN': (
        changed('train', 'annotations', segmentation=[[1, 2, 3, NAN, 5, 6]]), ERROR, 'train', 'id 2'
    ),
    'polygons as text': (
        changed('train', 'annotations', segmentation='[[1, 2, 3, 4, 5, 6]]'), ERROR, 'train', 'id 2'
    ),
    'polygons of text': (
        changed('train', 'annotations', segmentation=[['1', '2', '30', '4', '5', '60']]),
        ERROR, 'train', 'id 2',
    ),
    'polygons without the outer list': (
        _each('annotations', lambda a, _: a.update(segmentation=a['segmentation'][0])),
        ERROR, 'train', '58 of 58 masks that are not a list of',
    ),
    'polygons of points': (
        _polygon(lambda p, _: p.tolist()), ERROR, 'train', '58 of 58 masks that are not a list of'
    ),
    'polygons with y before x': (
        _polygon(lambda p, i: _flat(p[:, ::-1])), WARNING, 'train', '44 of 58 masks'
    ),
    'a polygon far away': (
        changed('train', 'annotations', segmentation=[[1e9, 2, 3, 4, 5, 1e9]]),
        ERROR, 'train', 'id 2',
    ),
    'empty run lengths': (
        _run_lengths_of(lambda pixels: dict(_plain(pixels), counts=[])),
        ERROR, 'train', '0 pixels of 51840',
    ),
    'run lengths that end early': (
        _run_lengths_of(lambda pixels: dict(_plain(pixels), counts=_plain(pixels)['counts'][:-1])),
        ERROR, 'train', '51604 pixels of 51840',
    ),
    'compressed run lengths that end early': (
        _run_lengths_of(
            lambda pixels: dict(_compressed(pixels), counts=_compressed(pixels)['counts'][:-3])
        ),
        ERROR, 'train', '51515 pixels of 51840',
    ),
    'run lengths without counts': (
        _run_lengths_of(lambda pixels: dict(size=list(pixels.shape))), ERROR, 'train', 'id 2'
    ),
    'run lengths by rows': (
        _run_lengths_of(lambda pixels: dict(_plain(pixels.T), size=list(pixels.shape))),
        WARNING, 'train', 'id 2',
    ),
    'run lengths of no pixel': (
        _run_lengths_of(lambda pixels: _plain(pixels * 0)), ERROR, 'train', 'id 2'
    ),
    'run lengths for polygons alone': (
        all_of(_run_lengths_of(_plain), settings({TRAIN_SET + 'pipeline.1.poly2mask': False})),
        ERROR, 'train', 'id 2',
    ),
}  # fmt: skip
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


def _turned_with_their_sizes(demo: Demo) -> None:
    """Turned by EXIF, and listed in the size as seen; the boxes stay where they are."""
    for number in range(1, 9):
        with_exif(8)(demo.image('train', number))

    def exchange(image: dict, _: object) -> None:
        if image['id'] <= 8:
            image.update(width=image['height'], height=image['width'])

    _each('images', exchange)(demo)


def _turned_and_annotated_so(demo: Demo) -> None:
    """Stored on its side; annotated upright."""
    file = demo.image('train', 3)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(file).transpose(Image.Transpose.ROTATE_90).save(file, exif=exif)


def _with_regions_without_labels(content: dict) -> None:
    """As KITTI's DontCare: a crowd of every class, of which more than one object in ten is one."""
    first = max(a['id'] for a in content['annotations']) + 1
    places = [
        (image, category) for image in content['images'] for category in content['categories']
    ]
    region = dict(bbox=[0, 0, 9, 9], area=81, iscrowd=1, segmentation=[[0, 0, 9, 0, 9, 9, 0, 9]])
    content['annotations'] += [
        dict(region, id=i, image_id=image['id'], category_id=category['id'])
        for i, (image, category) in enumerate(places, start=first)
    ]


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
    'regions without labels': lambda demo: demo.edit('train', _with_regions_without_labels),
    'iscrowd as true and false': _everywhere('annotations', lambda a, _: a.update(iscrowd=False)),
    'ignore': changed('train', 'annotations', ignore=1),
    'an image that EXIF turns, annotated as seen': _turned_and_annotated_so,
    'an image in CMYK': file_of(converted('CMYK', 'JPEG')),
    'an image of 16 bits': file_of(converted('I;16', 'PNG')),
    'EXIF that turns nothing': file_of(with_exif(1)),
    'train and val from one folder': all_of(
        lambda demo: [
            demo.image('val', n).rename(demo.image('train', 100 + n)) for n in range(1, 9)
        ],
        _each('images', lambda i, _: i.update(file_name=f'{100 + i["id"]:06d}.jpg'), 'val'),
        settings({f'{s}_dataloader.dataset.data_prefix.img': 'train/' for s in ('val', 'test')}),
    ),
}  # fmt: skip
"""Unusual but correct data: nothing is found."""

CORRECT_MASKS = {
    'run lengths': _run_lengths_of(_plain),
    'compressed run lengths': _run_lengths_of(_compressed),
    'a crowd of run lengths beside polygons alone': all_of(
        _run_lengths_of(_plain),
        _each('annotations', lambda a, _: a.update(iscrowd=int(a['id'] == 2))),
        settings({TRAIN_SET + 'pipeline.1.poly2mask': False}),
    ),
    'two polygons': _each(
        'annotations',
        lambda a, _: a.update(segmentation=a['segmentation'] * 2) if a['id'] == 2 else None,
    ),
    'polygons of integers': _polygon(lambda p, _: _flat(p.round().astype(int))),
    'polygons that end where they begin': _polygon(lambda p, _: _flat(np.concatenate([p, p[:1]]))),
    'polygons that leave the image': _polygon(
        lambda p, i: _flat(np.where(p > p.max(axis=0) - 1, p + 1.5, p))
    ),
}  # fmt: skip
"""The same for object masks."""
