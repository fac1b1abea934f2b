"""Name labels in formats that are not read, with a way to convert them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ptnt_mm.deploy.decoding import FORMATS
from ptnt_mm.utils.text import printable
from ptnt_mm.workbench.data.encodings import is_utf16
from ptnt_mm.workbench.data.many_files import grouped
from ptnt_mm.workbench.data.tree import Tree

_HEAD = 2**16  # bytes of a file that are searched
_FEW = 2  # files that may be for the whole data set
_TRIED = 200  # files that are opened, two of each folder
_LINE = 1000  # characters of a line that are searched, as patterns are slow for more
_IN_NAME = r'[^\s"\'<>,;:/\\|=]'
_IMAGE = rf'(?<!{_IN_NAME}){_IN_NAME}+(?:{"|".join(map(re.escape, FORMATS))})'
_NUMBER = r'-?\d+(?:\.\d+)?'
_TABLES = '.csv .tsv'
_JSON = '.json .jsonl .geojson .ndjson .vott'
_BY_HAND = (
    'write a CSV file with the first line filename,xmin,ymin,xmax,ymax,class and a row for each '
    'box, in pixels: it is read'
)
_ARRAYS = (
    "write a mask of classes or of numbered objects with PIL.Image.fromarray(mask.astype('uint16'))"
    f".save('masks/NAME.png'), NAME being that of the image; for boxes, {_BY_HAND}"
)
_MATLAB = (
    'MATLAB files, which may hold masks, points or boxes', '.mat', '',
    f'scipy.io.loadmat(FILE), or h5py.File(FILE) where that refuses, shows the content; {_ARRAYS}',
)  # fmt: skip
_NUMPY = (
    'NumPy arrays, which may be masks', '.npy .npz', '',
    f'numpy.load(FILE) shows the content; {_ARRAYS}',
)  # fmt: skip
_EXPORT = f'export COCO, YOLO or Pascal VOC from the tool that wrote it; without it, {_BY_HAND}'
_CONVERT = (
    'datum convert -i FOLDER -f coco_instances -o OUT (pip install datumaro), which knows many '
    f'formats; or {_BY_HAND}'
)


@dataclass(frozen=True)
class UnsupportedFormat:
    """A format that is not read, or several with the same advice.

    Attributes:
        name: Its usual name.
        suffixes: Suffixes of its files, in lower case.
        pattern: A regular expression that matches near the beginning of a file.
        advice: How to convert it.
        kind: 'table' if it may accompany class folders, as tables of boxes do; 'images' if it has
            no labels of objects, either; 'each' if there must be about a file for each image.
    """

    name: str
    suffixes: str
    pattern: str
    advice: str
    kind: str = ''

    def fits(self, file: Path, head: str) -> bool:
        """Whether a file with this beginning may be of this format."""
        suffixes = self.suffixes.split()
        return file.suffix.lower() in suffixes and re.search(self.pattern, head) is not None

    def may_be_in(self, tree: Tree) -> bool:
        """Whether a folder has enough files of its suffixes."""
        count = len(tree.with_suffix(*self.suffixes.split()))
        return self.kind != 'each' or (count > _FEW and 2 * count >= len(tree.images))


KNOWN = tuple(UnsupportedFormat(*row) for row in (
    ('VIA (VGG Image Annotator) CSV', _TABLES,
     r'region_shape_attributes|(?i:CSV_HEADER\s*=\s*metadata_id)',
     'open the project in VIA 2, and export JSON (Annotation > Export Annotations), which is read'),
    ('CSV with a column for each class', _TABLES,
     rf'(?i)\A[^\n]*\n[^\n,;\t]*{_IMAGE}"?(?:\s*[,;\t]\s*"?[01]"?){{2,}}\s*(?:\n|\Z)',
     'these are classes of images: move them into a folder for each class; images of several '
     "classes need a config with mmpretrain's MultiLabelDataset", 'images'),
    ('CSV of Label Studio', _TABLES, r'"(?:rectangle|polygon|brush|ellipse)labels"', _EXPORT),
    ('CSV boxes', _TABLES,
     r'(?i)\A[^\n]*\b(x_?min|x_?1|xtl|bbox\w*|x_?cent(er|re)|left)\b|'
     rf'{_IMAGE}"?[,;\t](?:[^\n]*[,;\t])?(?:"?\s*{_NUMBER}\s*"?[,;\t]){{3}}"?\s*{_NUMBER}|'
     rf'(?:{_NUMBER}[,;\t]){{4}}[^\n]*{_IMAGE}',
     'name the columns filename,xmin,ymin,xmax,ymax,class in the first line, with corners in '
     'pixels (xmax = x + width; for Open Images, times the size of the image); docs/formats.md '
     'lists other names that are known', 'table'),
    ('CSV with masks as run lengths', _TABLES,
     r'\A[^\n]*\n(?:[^\n]*[,;\t"])?\d+(?: \d+){3,} ?["\n,;\t]',
     'if the numbers of pixels count down the columns, from 1, name the columns ImageId and '
     'EncodedPixels: then they are read; otherwise draw them as masks'),
    ('CSV with classes of images', _TABLES, rf'(?im)^[^\n]*{_IMAGE}"?[,;\t]\s*\S',
     'move the images into a folder for each class', 'images'),
    ('COCO JSON with other keys', _JSON,
     r'(?s)\A(?=.*?"(?:image_?[iI]d|file_?[nN]ame)")(?=.*?"(?:bbox|segmentation)")',
     'name its lists "images", "annotations" and "categories", and the keys in them id, file_name, '
     'image_id, category_id and bbox'),
    ('JSON of VIA 3, Label Studio, Labelbox, Supervisely, QuPath or Create ML', _JSON,
     r'__VIA_|"xy"\s*:|"(?:rectangle|polygon|brush)labels"|"from_name"|"data_row"|"DataRow ID"|'
     r'"classTitle"|"geometryType"|"objectType"|"coordinates"\s*:\s*\{', _EXPORT),
    ('JSON with boxes or masks', _JSON,
     r'"(bbox(es)?|boxes|box2d|segmentations?|polygons?|poly2d|rle|regions)"\s*:\s*[\[{"]',
     _CONVERT),
    ('XML with boxes', '.xml', r'<(\w*box|xmin|x1|polygon|target)\b', _CONVERT),
    ('text of a video or of rotated boxes (KITTI tracking, MOT, MOTS, VisDrone, OTB, DOTA)', '.txt',
     # Two numbers and a word; six words; numbers between commas; four numbers; eight and a word.
     rf'\A\d+ -?\d+ [A-Za-z]\w* {_NUMBER} |\A(?:\d+ ){{5}}\S{{4,}}\s*(?:\n|\Z)|'
     rf'\A\s*{_NUMBER}(?:\s*,\s*{_NUMBER}){{3,9}}\s*,?\s*(?:\n|\Z)|'
     rf'\A\s*{_NUMBER}(?:[ \t]+{_NUMBER}){{3}}\s*(?:\n|\Z)|'
     rf'(?:\A|\n)\s*(?:{_NUMBER}\s+){{8}}[A-Za-z]\S*(?:\s+\d)?\s*(?:\n|\Z)', _CONVERT),
    ('text with boxes', '.txt',
     rf'(?i)\A[^\n]*(?:{_NUMBER}[ ,;\t]+){{3}}{_NUMBER}\s*(?:\n|\Z)|'
     rf'{_IMAGE}\s+(?:{_NUMBER}[ ,]\s*){{3}}|{_IMAGE}\s*\n\d+\s*\n(?:-?\d+ ){{3,}}',
     f"YOLO's are read if the folders are called images and labels; others, {_CONVERT}", 'table'),
    ('TFRecord', '.tfrecord .tfrecords .record', '', _CONVERT),
    *((*_MATLAB, kind) for kind in ('each', 'images')),
    *((*_NUMPY, kind) for kind in ('each', 'images')),
    ('a table of images and labels', '.parquet .arrow .h5 .hdf5 .lmdb', '',
     'write its images to files, and its labels in one of the formats above', 'images'),
))  # fmt: skip
"""Formats with the clearest signs first."""

_UNKNOWN = UnsupportedFormat(
    'unknown labels that name images',
    f'{_JSON} {_TABLES} .xml .txt .manifest .yaml',
    rf'(?is){_IMAGE}\b.*{_IMAGE}\b',
    f'for boxes, {_BY_HAND}',
    'images',
)


@dataclass(frozen=True)
class UnsupportedFiles:
    """Files of a format that is not read, and the text at the beginning of the first."""

    format: UnsupportedFormat
    files: tuple[Path, ...]
    head: str

    def line(self, tree: Tree) -> str:
        """The name of the format, with its files and the advice; of a table, the first line."""
        form, files = self.format, tree.first_few(self.files, 2)
        first = ''
        if form.kind == 'table' and form.suffixes == _TABLES:
            first = f' Its first line: {printable(self.head.splitlines()[0])}.'
        return f'{form.name} ({files}).{first} To convert: {form.advice}'


def unsupported_labels(tree: Tree) -> list[UnsupportedFiles]:
    """The formats that were seen in a folder and cannot be read."""
    heads = dict(_heads(tree))
    forms = [form for form in (*KNOWN, _UNKNOWN) if form.may_be_in(tree)]
    seen = grouped((_form(forms, file, head), file) for file, head in heads.items())
    seen.pop(None, None)
    # What names images without a known form is of interest only where nothing else is.
    known = {form: files for form, files in seen.items() if form is not _UNKNOWN}
    return [
        UnsupportedFiles(f, tuple(files), heads[files[0]]) for f, files in (known or seen).items()
    ]


def _form(forms: list[UnsupportedFormat], file: Path, head: str) -> UnsupportedFormat | None:
    return next((form for form in forms if form.fits(file, head)), None)


def _heads(tree: Tree) -> Iterator[tuple[Path, str]]:
    """The first files of each folder that may hold labels, each with the text at its beginning."""
    suffixes = {suffix for form in (*KNOWN, _UNKNOWN) for suffix in form.suffixes.split()}
    files = grouped(
        ((file.parent, file.suffix.lower()), file) for file in tree.with_suffix(*suffixes)
    )
    early = {file for of_folder in files.values() for file in of_folder[:2]}
    for file in islice(filter(early.__contains__, tree.files), _TRIED):
        try:
            with file.open('rb') as stream:
                head = stream.read(_HEAD)
        except OSError:
            continue
        text = head.decode('utf-16' if is_utf16(head) else 'utf-8-sig', 'replace')
        # Only in text, where a line is a record: a whole JSON file may be one line.
        if file.suffix.lower() in ('.txt', *_TABLES.split()):
            lines = (line[:_LINE].rstrip(',;') for line in text.splitlines())
            text = ''.join(f'{line}\n' for line in lines)
        yield file, text
