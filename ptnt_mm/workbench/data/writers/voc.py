"""Pascal VOC's XML: a file for each image."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.workbench.data.formats import voc
from ptnt_mm.workbench.data.labels import LabelledImage
from ptnt_mm.workbench.data.writer import Writer


def _write(_: Sequence[str], images: Sequence[LabelledImage], root: Path, folder: Path) -> None:
    """Write a file for each image; masks and scores have no place in it."""
    for image in images:
        name = image.path.relative_to(root)
        write_atomically(folder / name.with_suffix('.xml'), _xml_of(image, name.as_posix()))


def _xml_of(image: LabelledImage, name: str) -> bytes:
    top = Element('annotation')
    SubElement(top, 'filename').text = name
    size = SubElement(top, 'size')
    for key, value in zip(('width', 'height', 'depth'), (*image.size, 3), strict=True):
        SubElement(size, key).text = str(value)
    for item in image.objects:
        element = SubElement(top, 'object')
        texts = dict(name=item.label, pose='Unspecified', truncated='0')
        for key, value in (texts | {voc.DIFFICULT: str(int(bool(item.ignored)))}).items():
            SubElement(element, key).text = value
        box = SubElement(element, 'bndbox')
        left, upper, width, height = item.box
        corners = (left, upper, left + width, upper + height)
        for key, value, most in zip(voc.CORNERS, corners, image.size * 2, strict=True):
            SubElement(box, key).text = f'{min(value + voc.HALF, most):.2f}'
    indent(top)
    return tostring(top, encoding='utf-8')


WRITER = Writer(
    voc.FORMAT,
    write=_write,
    files='`NAME.xml` for each image',
    scores='no place',
    masks='',
)
