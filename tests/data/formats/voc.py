"""Pascal VOC: in folders, and next to the images."""

from itertools import pairwise
from pathlib import Path

from labelformat.formats.pascalvoc import PascalVOCObjectDetectionOutput

from ..made import COUNT, Sample, as_labelformat, draw_all
from ..planting import ESCAPE, copy_as, cut, link_up, remove, replace, rewrite, turn

# Each entity is ten of the one before it: &j; would be a billion letters.
BILLION_LAUGHS = '<!DOCTYPE a [<!ENTITY a "x">{}]>'.format(
    ''.join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise('abcdefghij'))
)


def laugh(root: Path) -> None:
    rewrite('*.xml', '<name>.*?</name>', '<name>&j;</name>')(root)
    rewrite('*.xml', '<annotation>', f'{BILLION_LAUGHS}<annotation>')(root)


_XML = '<xmin>.*?</xmin>'


def voc(root: Path) -> Path:
    """labelformat's VOC, as in VOCdevkit."""
    draw_all(root / 'JPEGImages')
    PascalVOCObjectDetectionOutput(root / 'Annotations').save(as_labelformat())
    return root


def voc_beside(root: Path) -> Path:
    """XML next to the images, in train and valid: Roboflow's VOC."""
    for split, first in (('train', 0), ('valid', 4)):
        draw_all(root / split, first=first, count=4 if split == 'train' else 2)
    PascalVOCObjectDetectionOutput(root / 'all').save(as_labelformat())
    for i in range(COUNT):
        (root / 'all' / f'im{i}.xml').rename(root / ('train' if i < 4 else 'valid') / f'im{i}.xml')
    (root / 'all').rmdir()
    return root


SAMPLES = [
    Sample(
        voc,
        faults={
            'cut': cut('*.xml'),
            'binary': replace('*.xml', b'<annotation>\xff\xfe\x00\x80'),
            'billion laughs': laugh,
            'an entity that is a file': rewrite(
                '*.xml',
                '<annotation>.*?<name>.*?</name>',
                '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><annotation><object><name>&a;</name>',
            ),
            'corner is a word': rewrite('*.xml', _XML, '<xmin>left</xmin>'),
            'swapped corners': rewrite('*.xml', _XML, '<xmin>90</xmin>'),
            'outside': rewrite('*.xml', '<xmax>.*?</xmax>', '<xmax>500</xmax>'),
            'no class': rewrite('*.xml', '<name>.*?</name>', '<name> </name>'),
            'another size': rewrite('*.xml', '<width>.*?</width>', '<width>300</width>'),
            'image missing': remove('*.png'),
            'image cut': replace('*.png', b'\x89PNG\r\n'),
            'image truncated': cut('*.png'),
            'label missing': remove('*.xml'),
            'image turned': turn('*.png'),
        },
        harmless={
            'size is a word': rewrite('*.xml', '<width>.*?</width>', '<width>wide</width>'),
            'path leads out': rewrite(
                '*.xml', '<filename>.*?</filename>', f'<filename>{ESCAPE}</filename>'
            ),
            'two images of a name': copy_as('*.png', 'other/im0.png'),
            'loop of links': link_up,
            'a name space': rewrite('*.xml', '<annotation>', '<annotation xmlns="urn:x">'),
        },
    ),
    Sample(voc_beside, splits={'train': 4, 'val': 2}),
]
