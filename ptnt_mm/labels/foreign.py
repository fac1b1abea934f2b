"""Name labels in formats that are not read, with a way to convert them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path

from ptnt_mm.labels.formats.box_tables import columns_of
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.decoding import FORMATS
from ptnt_mm.utils.encodings import is_utf16
from ptnt_mm.utils.text import first_few

_HEAD = 2**16  # bytes of a file that are searched
_TRIED = 200  # files of a suffix that are opened
_IMAGE = rf'[^\s"\'<>,;:/\\|=]+(?:{"|".join(map(re.escape, FORMATS))})'
_NUMBER = r'"?\s*-?\d+(?:\.\d+)?\s*"?'
_BY_HAND = (
    'write a CSV file with the first line filename,xmin,ymin,xmax,ymax,class and a row for each '
    'box, in pixels: it is read'
)


@dataclass(frozen=True)
class Foreign:
    """A format that is not read.

    Attributes:
        name: Its usual name.
        suffixes: Suffixes of its files, in lower case.
        patterns: Regular expressions that must all match near the beginning of a file.
        advice: How to convert it.
        is_table: Whether it may accompany class folders, as tables of boxes do.
        has_objects: Whether it has labels of objects, which class folders have not.
        remark: The beginning of a file -> a sentence about why it is not read.
    """

    name: str
    suffixes: tuple[str, ...]
    patterns: tuple[str, ...]
    advice: str
    is_table: bool = False
    has_objects: bool = True
    remark: Callable[[str], str] | None = None


def _columns(head: str) -> str:
    """A sentence about the columns of a table of boxes."""
    found = columns_of(head)
    if found is None:
        return 'Its first line names no columns.'
    seen, unknown, missing = map(', '.join, found)
    unknown = f'; not understood: {unknown}' if unknown else ''
    missing = f'; missing: {missing}' if missing else ''
    return f'Its columns: {seen}{unknown}{missing}.'


_TABLES = ('.csv', '.tsv')
_DATUM = 'datum convert -i FOLDER -if {} -f coco_instances -o OUT (pip install datumaro)'

KNOWN = (
    Foreign(
        'VIA 3 (VGG Image Annotator) JSON',
        ('.json',),
        (r'__VIA_|"vid"\s*:[^}]*"xy"\s*:',),
        'export COCO from VIA 3; projects of VIA 2 are read',
    ),
    Foreign(
        'VIA (VGG Image Annotator) CSV',
        _TABLES,
        (r'region_shape_attributes|(?i:CSV_HEADER\s*=\s*metadata_id)',),
        'open the project in VIA 2 and export JSON (Annotation > Export Annotations (as json)), '
        'which is read',
    ),
    Foreign(
        'CSV with masks as run lengths',
        _TABLES,
        (r'(?i)\A[^\n]*(encoded_?pixels|\brle)',),
        'draw them as masks, such as masks/NAME/1.png for the first object of NAME: each pair of '
        'numbers is a first pixel, counted from 1 down the columns, and a length',
    ),
    Foreign(
        'CSV with a column for each class',
        _TABLES,
        (rf'(?i)\A[^\n]*\n[^\n,;\t]*{_IMAGE}"?(?:\s*[,;\t]\s*"?[01]"?){{2,}}\s*(?:\n|\Z)',),
        'these are classes of images: move them into a folder for each class; images of several '
        "classes need a config with mmpretrain's MultiLabelDataset",
        has_objects=False,
    ),
    Foreign(
        'Open Images CSV boxes',
        _TABLES,
        (r'\A[^\n]*\bImageID\b', r'\A[^\n]*\bXMin\b'),
        'globox convert FILE.csv OUT.json --format openimage --img_folder IMAGES --save_fmt coco '
        '(pip install globox)',
        True,
    ),
    Foreign(
        'CSV boxes',
        _TABLES,
        (
            rf'(?im)\A[^\n]*\b(x_?min|x_?1|xtl|bbox\w*|x_?cent(er|re)|left)\b'
            rf'|^[^\n]*{_IMAGE}"?[,;\t](?:[^\n]*[,;\t])?(?:{_NUMBER}[,;\t]){{3}}{_NUMBER}',
        ),
        'name the columns filename,xmin,ymin,xmax,ymax,class in the first line, with corners in '
        'pixels (xmax = x + width); docs/data.md lists other names that are known',
        True,
        remark=_columns,
    ),
    Foreign(
        'CSV with classes of images',
        _TABLES,
        (rf'(?im)^[^\n]*{_IMAGE}"?[,;\t]\s*\S',),
        'move the images into a folder for each class',
        has_objects=False,
    ),
    Foreign(
        'COCO panoptic JSON',
        ('.json',),
        (r'"segments_info"',),
        'panopticapi/converters/panoptic2detection_coco_format.py, which writes COCO (pip install '
        'git+https://github.com/cocodataset/panopticapi)',
    ),
    Foreign(
        'COCO JSON with other keys',
        ('.json',),
        (r'"image_?[iI]d"|"file_?[nN]ame"', r'"bbox"|"segmentation"'),
        'name its lists "images", "annotations" and "categories", and the keys in them id, '
        'file_name, image_id, category_id and bbox',
    ),
    Foreign(
        'QuPath GeoJSON',
        ('.json', '.geojson'),
        (r'"Feature(?:Collection)?"', r'"(?:objectType|classification|isLocked)"'),
        "export labelled images with QuPath's TileExporter, which are read as masks",
    ),
    Foreign(
        'Create ML JSON',
        ('.json',),
        (r'"coordinates"\s*:\s*\{', r'"label"', r'"annotations?"'),
        'sv.DetectionDataset.from_createml(...).as_coco(...) (pip install supervision)',
    ),
    Foreign(
        'Supervisely JSON',
        ('.json',),
        (r'"classTitle"|"geometryType"', r'"size"|"classes"'),
        'export COCO from Supervisely',
    ),
    Foreign(
        'BDD100K JSON',
        ('.json',),
        (r'"labels"', r'"box2d"|"poly2d"|"rle"'),
        'python -m bdd100k.label.to_coco -m det -i FILE.json -o OUT.json (from bdd100k)',
    ),
    Foreign(
        'Labelbox JSON',
        ('.json', '.ndjson'),
        (r'"data_row"|"Labeled Data"|"DataRow ID"',),
        'labelformat convert --task object-detection --input-format labelbox --input-file '
        'FILE.ndjson --category-names a,b --output-format coco --output-file OUT.json, for boxes '
        '(pip install labelformat)',
    ),
    Foreign(
        'Label Studio JSON',
        ('.json',),
        (r'"result"|"annotator"', r'"(from_name|(rectangle|polygon|brush)labels|lead_time)"'),
        'export COCO or YOLO from Label Studio, or label-studio-converter export -i FILE.json -c '
        'CONFIG.xml -o OUT -f COCO (pip install label-studio-sdk)',
    ),
    Foreign(
        'VoTT JSON', ('.json', '.vott'), (r'"asset"|"assets"', r'"regions"|"visitedFrames"'),
        _DATUM.format('vott_json'),
    ),
    Foreign(
        'Cityscapes JSON polygons',
        ('.json',),
        (r'"imgHeight"', r'"polygon"'),
        'csCreateTrainIdLabelImgs, which writes class masks (pip install cityscapesscripts)',
    ),
    Foreign(
        'Datumaro JSON', ('.json',), (r'"items"', r'"categories"', r'"infos?"'),
        _DATUM.format('datumaro'),
    ),
    Foreign(
        'LabelMe XML of the web version',
        ('.xml',),
        (r'<annotation', r'<polygon>|<pt>'),
        _DATUM.format('label_me'),
    ),
    Foreign(
        'DOTA text (rotated boxes)',
        ('.txt',),
        (r'(?m)^\s*(?:-?\d+(?:\.\d+)?\s+){8}[A-Za-z]\S*(?:\s+\d)?\s*$',),
        _DATUM.format('dota'),
    ),
    Foreign(
        'KITTI tracking text',
        ('.txt',),
        (r'\A\d+ -?\d+ [A-Za-z]\w* (?:-?[\d.]+ ){13}',),
        f'write a file for each image without the first two numbers, as KITTI has for objects, or '
        f'{_BY_HAND}',
    ),
    Foreign(
        'MOTS text (masks of a video)',
        ('.txt',),
        (r'\A\d+ \d+ \d+ \d+ \d+ [^\s\d]?\S{3,}\s*(?:\n|\Z)',),
        'use the PNGs of MOTS, in which each number is one object: they are read',
    ),
    Foreign(
        'UA-DETRAC XML',
        ('.xml',),
        (r'<sequence\b', r'<target'),
        _BY_HAND,
    ),
    Foreign(
        'WIDER FACE text',
        ('.txt',),
        (rf'(?im)^\S*{_IMAGE}\s*\n\d+\s*\n(?:-?\d+ ){{3,}}',),
        _DATUM.format('wider_face'),
    ),
    Foreign(
        'MOT or VisDrone text',
        ('.txt',),
        (r'\A(?:\s*-?\d+(?:\.\d+)?\s*,){5,9}\s*(?:-?\d+(?:\.\d+)?)?\s*(?:\n|\Z)',),
        f'for MOT, {_DATUM.format("mot_seq")}; for VisDrone, {_BY_HAND}',
    ),
    Foreign(
        'lists of images with boxes',
        ('.txt',),
        (rf'(?im)^[^\n]*{_IMAGE}"?[,; \t](?:[^\n]*[,; \t])?(?:{_NUMBER}[,; \t]){{3}}{_NUMBER}',),
        _BY_HAND,
        True,
    ),
    Foreign(
        'text with a box on each line, as of a video (OTB, LaSOT)',
        ('.txt',),
        (r'\A\s*(?:-?\d+(?:\.\d+)?(?:\s*,\s*|[ \t]+)){3}-?\d+(?:\.\d+)?\s*(?:\n|\Z)',),
        _BY_HAND,
    ),
    Foreign(
        'text with numbers',
        ('.txt',),
        (r'\A[^\n]*(?:-?\d+(?:\.\d+)?[ ,;\t]+){3}-?\d+(?:\.\d+)?\s*(?:\n|\Z)',),
        _BY_HAND,
        True,
    ),
    Foreign(
        'TFRecord', ('.tfrecord', '.tfrecords', '.record'), (), _DATUM.format('tf_detection_api')
    ),
    Foreign(
        'a table of images and labels',
        ('.parquet', '.arrow', '.h5', '.hdf5', '.npz', '.mat', '.lmdb'),
        (),
        'write its images to files, and its labels in one of the formats above',
        has_objects=False,
    ),
)  # fmt: skip
"""Formats with the clearest signs first."""

_UNKNOWN = Foreign(
    'unknown labels that name images',
    ('.json', '.jsonl', '.ndjson', '.xml', '.txt', '.csv', '.tsv', '.manifest', '.yaml'),
    (),
    f'for boxes, {_BY_HAND}',
    has_objects=False,
)


@dataclass(frozen=True)
class Seen:
    """Files of a format that is not read, and the text at the beginning of the first."""

    format: Foreign
    files: tuple[Path, ...]
    head: str

    def line(self, tree: Tree) -> str:
        """The name of the format, with its files and the advice."""
        files = first_few((str(tree.relative(file)) for file in self.files), 2)
        remark = f' {self.format.remark(self.head)}' if self.format.remark else ''
        return f'{self.format.name} ({files}).{remark} To convert: {self.format.advice}'


def foreign_labels(tree: Tree, read: Collection[Path] = ()) -> list[Seen]:
    """The formats that were seen in a folder and cannot be read.

    Args:
        tree: The folder.
        read: The files of a format that is read, which are not of an unknown one.
    """
    seen: dict[Foreign, list[Path]] = {}
    heads: dict[Foreign, str] = {}
    names = {image.name.casefold() for image in tree.images}
    for file, head in _heads(tree):
        form = next((form for form in KNOWN if _matches(form, file, head)), None)
        if form is None and file not in read and _names_images(file, head, names):
            form = _UNKNOWN
        if form is not None:
            seen.setdefault(form, []).append(file)
            heads.setdefault(form, head)
    # What names images without a known form is of interest only where nothing else is.
    known = {form: files for form, files in seen.items() if form is not _UNKNOWN}
    return [Seen(form, tuple(files), heads[form]) for form, files in (known or seen).items()]


def _heads(tree: Tree) -> Iterator[tuple[Path, str]]:
    """The files that may hold labels, each with the text at its beginning."""
    suffixes = {suffix for form in (*KNOWN, _UNKNOWN) for suffix in form.suffixes}
    for suffix in sorted(suffixes):
        for file in _sample(tree.with_suffix(suffix)):
            try:
                with file.open('rb') as stream:
                    yield file, _text(stream.read(_HEAD))
            except OSError:
                continue


def _sample(files: Iterable[Path]) -> Iterator[Path]:
    """A number of files: the first of each folder, the second of each, and so on."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    return islice(filter(None, chain.from_iterable(zip_longest(*folders.values()))), _TRIED)


def _text(head: bytes) -> str:
    return head.decode('utf-16' if is_utf16(head) else 'utf-8-sig', 'replace')


def _matches(form: Foreign, file: Path, head: str) -> bool:
    is_suffix = file.suffix.lower() in form.suffixes
    return is_suffix and all(re.search(pattern, head) for pattern in form.patterns)


def _names_images(file: Path, head: str, names: set[str]) -> bool:
    """Whether a file names two images or more of the folder."""
    found = {name.casefold() for name in re.findall(_IMAGE, head, re.IGNORECASE)}
    return file.suffix.lower() in _UNKNOWN.suffixes and len(found & names) > 1
