"""Count how many predicted boxes had to be corrected: the tables of docs/label_faster.md.

    python tools/dev/count_corrections.py PREDICTIONS.json LABELS [--thresholds 0.3 0.4 0.5]

LABELS is a folder of images and of labels without mistakes, in any format that ``ptnt new`` reads.
A predicted box is that of an object if their IoU is 0.5 or more, the best score first. From 0.75
on, it can stay as it is.
"""

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pycocotools import mask as coco

from ptnt_mm.cli.start import Parser
from ptnt_mm.labels.model import LabelledImage, LabelledObject, box_between
from ptnt_mm.labels.recognise import read_labels, recognise
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import markdown

_SAME, _EXACT = 0.5, 0.75  # IoU
KINDS = ('stay', 'move', 'get another class', 'are deleted', 'are drawn')


def count(detections: Sequence[dict], objects: Sequence[LabelledObject]) -> Counter[str]:
    """Count the corrections that turn the detections of an image, best first, into its objects."""
    done: Counter[str] = Counter()
    free = set(range(len(objects)))
    boxes = np.array([box_between(*found['box']) for found in detections], float)
    wanted = np.array([item.box for item in objects], float)
    # pycocotools returns a list if there are none.
    overlaps = np.reshape(coco.iou(boxes, wanted, [0] * len(wanted)), (len(boxes), len(wanted)))
    for i, found in enumerate(detections):
        nearest = max(free, key=lambda j: overlaps[i, j]) if free else None
        if nearest is None or overlaps[i, nearest] < _SAME:
            done['are deleted'] += 1
            continue
        free.remove(nearest)
        if found['label'] != objects[nearest].label:
            done['get another class'] += 1
        else:
            done['stay' if overlaps[i, nearest] >= _EXACT else 'move'] += 1
    done['are drawn'] += len(free)
    return done


def labelled(file: str, images: Sequence[LabelledImage]) -> LabelledImage | None:
    """The image of a prediction among those with labels, None without one.

    If the file itself has no labels, the only image of its name counts: copies may be labelled.

    Raises:
        UserError: if several have that name.
    """
    path = Path(file).resolve()
    same = [image for image in images if image.path.name == path.name]
    exact = [image for image in same if image.path.resolve() == path]
    if not exact and len(same) > 1:
        raise UserError(f'{file} is not among the labelled images, and {len(same)} have its name')
    return next(iter(exact or same), None)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('predictions', type=Path)
    parser.add_argument('labels', type=Path)
    parser.add_argument('--thresholds', type=float, nargs='+', default=(0.3, 0.4, 0.5))
    return parser.run(print_counts, words)


def print_counts(args: Namespace) -> None:
    """Print the number of images and objects, and a row for each threshold.

    Raises:
        UserError: if the labels cannot be read, or a prediction's image is not known.
    """
    tree = Tree(args.labels)
    images = read_labels(tree, recognise(tree)).images
    predicted = json.loads(args.predictions.read_text(encoding='utf-8'))['images']
    found = ((entry['detections'], labelled(entry['file'], images)) for entry in predicted)
    pairs = [(detections, image.objects) for detections, image in found if image is not None]
    objects = sum(len(items) for _, items in pairs)
    print(f'{len(pairs)} images with {objects:,} objects\n')
    rows = []
    for threshold in args.thresholds:
        total: Counter[str] = Counter()
        for detections, items in pairs:
            total += count([found for found in detections if found['score'] >= threshold], items)
        numbers = [f'{total[kind]:,}' for kind in KINDS]
        rows.append([f'{threshold:g}', f'{total.total() - total["are drawn"]:,}', *numbers])
    print(markdown(['score from', 'predicted', *KINDS], rows))


if __name__ == '__main__':
    sys.exit(main())
