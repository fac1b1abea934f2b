"""Name labels in formats that are not read, with a way to convert them."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path

from ptnt_mm.labels.formats.box_tables import columns_of
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.decoding import FORMATS
from ptnt_mm.utils.encodings import is_utf16

_HEAD = 2**16  # bytes of a file that are searched
_TRIED = 200  # files of a suffix that are opened
_LINE = 1000  # characters of a line of text that are searched, as patterns are slow for more
_LONG = re.compile(rf'(.{{{_LINE}}}[^,;\t ]{{,{_LINE}}}).*')  # up to the end of a cell
_IN_NAME = r'[^\s"\'<>,;:/\\|=]'
_IMAGE = rf'(?<!{_IN_NAME}){_IN_NAME}+(?:{"|".join(map(re.escape, FORMATS))})'
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
        pattern: A regular expression that matches near the beginning of a file.
        advice: How to convert it.
        kind: 'table' if it may accompany class folders, as tables of boxes do, and 'images' if it
            has no labels of objects, either.
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


def _with(*patterns: str) -> str:
    """A pattern for text that has all of several."""
    return r'(?s)\A' + ''.join(f'(?=.*?(?:{pattern}))' for pattern in patterns)


_CSV = '.csv .tsv'
_JSON = '.json .geojson .ndjson .vott'
_BOX = rf'"?[,;\t](?:[^\n]*[,;\t])?(?:{_NUMBER}[,;\t]){{3}}{_NUMBER}'
_DATUM = 'datum convert -i FOLDER -if {} -f coco_instances -o OUT (pip install datumaro)'

KNOWN = tuple(Foreign(*row) for row in (
    ('VIA 3 (VGG Image Annotator) JSON', _JSON, r'__VIA_|"vid"\s*:[^}]*"xy"\s*:',
     'export COCO from VIA 3; projects of VIA 2 are read'),
    ('VIA (VGG Image Annotator) CSV', _CSV,
     r'region_shape_attributes|(?i:CSV_HEADER\s*=\s*metadata_id)',
     'open the project in VIA 2, and export JSON (Annotation > Export Annotations), which is read'),
    ('CSV with a column for each class', _CSV,
     rf'(?i)\A[^\n]*\n[^\n,;\t]*{_IMAGE}"?(?:\s*[,;\t]\s*"?[01]"?){{2,}}\s*(?:\n|\Z)',
     'these are classes of images: move them into a folder for each class; images of several '
     "classes need a config with mmpretrain's MultiLabelDataset", 'images'),
    ('Open Images CSV boxes', _CSV, _with(r'\A[^\n]*\bImageID\b', r'\A[^\n]*\bXMin\b'),
     'globox convert FILE.csv OUT.json --format openimage --img_folder IMAGES --save_fmt coco '
     '(pip install globox)', 'table'),
    ('CSV boxes', _CSV,
     rf'(?i)\A[^\n]*\b(x_?min|x_?1|xtl|bbox\w*|x_?cent(er|re)|left)\b|{_IMAGE}{_BOX}',
     'name the columns filename,xmin,ymin,xmax,ymax,class in the first line, with corners in '
     'pixels (xmax = x + width); docs/formats.md lists other names that are known', 'table'),
    ('CSV with masks as run lengths', _CSV,
     r'\A[^\n]*\n(?:[^\n]*[,;\t"])?\d+(?: \d+){3,} ?["\n,;\t]',
     'if the numbers of pixels count down the columns, from 1, name the columns ImageId and '
     'EncodedPixels: then they are read; otherwise draw them as masks'),
    ('CSV with classes of images', _CSV, rf'(?im)^[^\n]*{_IMAGE}"?[,;\t]\s*\S',
     'move the images into a folder for each class', 'images'),
    ('COCO JSON with other keys', _JSON,
     _with('"image_?[iI]d"|"file_?[nN]ame"', '"bbox"|"segmentation"'),
     'name its lists "images", "annotations" and "categories", and the keys in them id, file_name, '
     'image_id, category_id and bbox'),
    ('QuPath GeoJSON', _JSON,
     _with('"Feature(?:Collection)?"', '"(?:objectType|classification|isLocked)"'),
     "export labelled images with QuPath's TileExporter, which are read as masks"),
    ('Create ML JSON', _JSON, _with(r'"coordinates"\s*:\s*\{', '"label"', '"annotations?"'),
     'sv.DetectionDataset.from_createml(...).as_coco(...) (pip install supervision)'),
    ('Supervisely JSON', _JSON, _with('"classTitle"|"geometryType"', '"size"|"classes"'),
     'export COCO from Supervisely'),
    ('BDD100K JSON', _JSON, _with('"labels"', '"box2d"|"poly2d"|"rle"'),
     'python -m bdd100k.label.to_coco -m det -i FILE.json -o OUT.json (from bdd100k)'),
    ('Labelbox JSON', _JSON, '"data_row"|"Labeled Data"|"DataRow ID"',
     'labelformat convert --task object-detection --input-format labelbox --input-file FILE.ndjson '
     '--category-names a,b --output-format coco --output-file OUT.json, for boxes (pip install '
     'labelformat)'),
    ('Label Studio JSON', _JSON,
     _with('"result"|"annotator"', '"(from_name|(rectangle|polygon|brush)labels|lead_time)"'),
     'export COCO or YOLO from Label Studio, or label-studio-converter export -i FILE.json -c '
     'CONFIG.xml -o OUT -f COCO (pip install label-studio-sdk)'),
    ('VoTT JSON', _JSON, _with('"assets?"', '"regions"|"visitedFrames"'),
     _DATUM.format('vott_json')),
    ('Cityscapes JSON polygons', _JSON, _with('"imgHeight"', '"polygon"'),
     'csCreateTrainIdLabelImgs, which writes class masks (pip install cityscapesscripts)'),
    ('Datumaro JSON', _JSON, _with('"items"', '"categories"', '"infos?"'),
     _DATUM.format('datumaro')),
    ('LabelMe XML of the web version', '.xml', _with('<annotation', '<polygon>|<pt>'),
     _DATUM.format('label_me')),
    ('UA-DETRAC XML', '.xml', _with(r'<sequence\b', '<target'), _BY_HAND),
    ('DOTA text (rotated boxes)', '.txt',
     r'(?m)^\s*(?:-?\d+(?:\.\d+)?\s+){8}[A-Za-z]\S*(?:\s+\d)?\s*$', _DATUM.format('dota')),
    ('KITTI tracking text', '.txt', r'\A\d+ -?\d+ [A-Za-z]\w* (?:-?[\d.]+ ){13}',
     'write a file for each image without the first two numbers, as KITTI has for objects, or '
     f'{_BY_HAND}'),
    ('MOTS text (masks of a video)', '.txt', r'\A\d+ \d+ \d+ \d+ \d+ [^\s\d]?\S{3,}\s*(?:\n|\Z)',
     'use the PNGs of MOTS, in which each number is one object: they are read'),
    ('WIDER FACE text', '.txt', rf'(?im)^\S*{_IMAGE}\s*\n\d+\s*\n(?:-?\d+ ){{3,}}',
     _DATUM.format('wider_face')),
    ('MOT or VisDrone text', '.txt',
     r'\A(?:\s*-?\d+(?:\.\d+)?\s*,){5,9}\s*(?:-?\d+(?:\.\d+)?)?\s*(?:\n|\Z)',
     f'for MOT, {_DATUM.format("mot_seq")}; for VisDrone, {_BY_HAND}'),
    ('lists of images with boxes', '.txt',
     rf'(?i){_IMAGE}{_BOX.replace(";", "; ")}', _BY_HAND, 'table'),
    ('text with a box on each line, as of a video (OTB, LaSOT)', '.txt',
     r'\A\s*(?:-?\d+(?:\.\d+)?(?:\s*,\s*|[ \t]+)){3}-?\d+(?:\.\d+)?\s*(?:\n|\Z)', _BY_HAND),
    ('text with numbers', '.txt',
     r'\A[^\n]*(?:-?\d+(?:\.\d+)?[ ,;\t]+){3}-?\d+(?:\.\d+)?\s*(?:\n|\Z)', _BY_HAND, 'table'),
    ('TFRecord', '.tfrecord .tfrecords .record', '', _DATUM.format('tf_detection_api')),
    ('a table of images and labels', '.parquet .arrow .h5 .hdf5 .npz .mat .lmdb', '',
     'write its images to files, and its labels in one of the formats above', 'images'),
))  # fmt: skip
"""Formats with clear signs, the clearest first."""

_UNKNOWN = Foreign(
    'unknown labels that name images',
    '.json .jsonl .ndjson .xml .txt .csv .tsv .manifest .yaml',
    rf'(?is){_IMAGE}\b.*{_IMAGE}\b',
    f'for boxes, {_BY_HAND}',
    'images',
)
_GENERAL = (
    Foreign(
        'JSON with boxes or masks',
        _JSON,
        r'"(bbox(es)?|boxes|segmentations?|polygons?|rle)"\s*:\s*[\[{"]',
        _BY_HAND,
    ),
    Foreign('XML with boxes', '.xml', r'<(\w*box|xmin|x1|polygon)\b', _BY_HAND),
    _UNKNOWN,
)
"""Formats that a file of a format that is read may also seem to be."""


@dataclass(frozen=True)
class Seen:
    """Files of a format that is not read, and the text at the beginning of the first."""

    format: Foreign
    files: tuple[Path, ...]
    head: str

    def line(self, tree: Tree) -> str:
        """The name of the format, with its files and the advice."""
        form, files = self.format, tree.first_few(self.files, 2)
        columns = (
            f' {_columns(self.head)}' if form.kind == 'table' and form.suffixes == _CSV else ''
        )
        return f'{form.name} ({files}).{columns} To convert: {form.advice}'


def _columns(head: str) -> str:
    """A sentence about the columns of a table of boxes."""
    if (found := columns_of(head)) is None:
        return 'Its first line names no columns.'
    seen, unknown, missing = map(', '.join, found)
    unknown = f'; not understood: {unknown}' if unknown else ''
    missing = f'; missing: {missing}' if missing else ''
    return f'Its columns: {seen}{unknown}{missing}.'


def foreign_labels(tree: Tree, read: Collection[Path] = ()) -> list[Seen]:
    """The formats that were seen in a folder and cannot be read.

    Args:
        tree: The folder.
        read: The files of a format that is read; only clear signs of another count for them.
    """
    seen: dict[Foreign, list[Path]] = {}
    heads: dict[Foreign, str] = {}
    for file, head in _heads(tree):
        form = next((form for form in (*KNOWN, *_GENERAL) if form.fits(file, head)), None)
        if form is not None and not (form in _GENERAL and file in read):
            seen.setdefault(form, []).append(file)
            heads.setdefault(form, head)
    # What names images without a known form is of interest only where nothing else is.
    known = {form: files for form, files in seen.items() if form is not _UNKNOWN}
    return [Seen(form, tuple(files), heads[form]) for form, files in (known or seen).items()]


def _heads(tree: Tree) -> Iterator[tuple[Path, str]]:
    """The files that may hold labels, each with the text at its beginning."""
    suffixes = {suffix for form in (*KNOWN, *_GENERAL) for suffix in form.suffixes.split()}
    for suffix in sorted(suffixes):
        for file in _sample(tree.with_suffix(suffix)):
            try:
                with file.open('rb') as stream:
                    text = _text(stream.read(_HEAD))
            except OSError:
                continue
            # Only in text, where a line is a record: a whole JSON file may be one line.
            yield file, _LONG.sub(r'\1', text) if suffix in ('.txt', '.csv', '.tsv') else text


def _sample(files: Iterable[Path]) -> Iterator[Path]:
    """A number of files: the first of each folder, the second of each, and so on."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    return islice(filter(None, chain.from_iterable(zip_longest(*folders.values()))), _TRIED)


def _text(head: bytes) -> str:
    return head.decode('utf-16' if is_utf16(head) else 'utf-8-sig', 'replace')
