"""Pascal VOC with polygons."""

import re
from pathlib import Path

from ..made import Sample
from ..planting import remove, rewrite
from .voc import voc


def voc_polygons(root: Path) -> Path:
    """Roboflow's: five corners after each box; four would be those of a rotated box."""
    voc(root)
    for file in root.rglob('*.xml'):
        file.write_text(re.sub('<bndbox>.*?</bndbox>', _with_polygon, file.read_text(), flags=re.S))
    return root


def _with_polygon(box: re.Match[str]) -> str:
    left, top, right, bottom = map(float, re.findall(r'>([\d.]+)<', box[0]))
    points = [left, top, right, top, right, bottom, left, bottom, left, (top + bottom) / 2]
    corners = (
        f'<{"xy"[k % 2]}{k // 2 + 1}>{v}</{"xy"[k % 2]}{k // 2 + 1}>' for k, v in enumerate(points)
    )
    return f'{box[0]}<polygon>{"".join(corners)}</polygon>'


SAMPLES = [
    Sample(
        voc_polygons,
        faults={
            'no class': rewrite('*.xml', '<name>.*?</name>', '<name> </name>'),
            'image missing': remove('*.png'),
            'polygon outside': rewrite('*.xml', '<x2>.*?</x2>', '<x2>9000</x2>'),
            'polygon of two corners': rewrite('*.xml', '<x3>.*?</y5>', ''),
            'half a corner, and no box': rewrite(
                '*.xml', '<bndbox>.*?</y5>', '<polygon><x1>3</x1>'
            ),
            'corner of a polygon is a word': rewrite('*.xml', '<x2>.*?<', '<x2>left<'),
        },
    )
]
