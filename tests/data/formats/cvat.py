"""CVAT for images 1.1."""

from pathlib import Path

from labelformat.formats.cvat import CVATObjectDetectionOutput

from ..made import COUNT, SIZE, Sample, as_labelformat, boxes_of, draw_all
from ..planting import cut, rewrite

_POINTS = 'points="[^"]*"'


def cvat(root: Path) -> Path:
    """labelformat's CVAT."""
    draw_all(root / 'images')
    CVATObjectDetectionOutput(root).save(as_labelformat())
    return root


def cvat_shapes(root: Path) -> Path:
    """'CVAT for images 1.1' as CVAT's documentation shows it: polygon, mask, ellipse, points."""
    draw_all(root / 'images')
    images = []
    for i in range(COUNT):
        (_, (left, top, right, bottom)), (_, dot) = boxes_of(i)
        points = f'{left},{top};{right},{top};{right},{bottom};{left},{bottom}'
        width, height = dot[2] - dot[0], dot[3] - dot[1]
        images.append(
            f'<image id="{i}" name="im{i}.png" subset="{"Train" if i < 4 else "Validation"}" '
            f'width="{SIZE[0]}" height="{SIZE[1]}">'
            f'<polygon label="cell" source="manual" occluded="0" points="{points}" z_order="0">'
            '</polygon>'
            f'<mask label="dot" source="manual" occluded="0" rle="0, {width * height}" '
            f'left="{dot[0]}" top="{dot[1]}" width="{width}" height="{height}" z_order="0"></mask>'
            '<points label="dot" points="3,3" z_order="0"></points></image>'
        )
    (root / 'annotations.xml').write_text(
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n<meta>'
        '<task><labels><label><name>cell</name></label><label><name>dot</name></label></labels>'
        f'</task></meta>\n{"".join(images)}\n</annotations>\n'
    )
    return root


SAMPLES = [
    Sample(cvat),
    Sample(
        cvat_shapes,
        splits={'train': 4, 'val': 2},
        faults={
            'points of words': rewrite('*.xml', _POINTS, 'points="a,b;c,d;e,f"'),
            'mask too short': rewrite('*.xml', 'rle="[^"]*"', 'rle="0, 7"'),
            'mask outside': rewrite('*.xml', 'left="[^"]*"', 'left="90"'),
            'no label': rewrite('*.xml', '<polygon label="cell"', '<polygon'),
            'a video': rewrite('*.xml', '</annotations>', '<track id="0"/></annotations>'),
            'another size': rewrite('*.xml', 'width="96"', 'width="300"'),
            'no name': rewrite('*.xml', 'name="im0.png"', ''),
        },
        fatal={
            'cut': cut('*.xml'),
        },
    ),
]
