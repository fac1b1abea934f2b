"""Count how many predicted boxes had to be corrected: the tables of docs/label_faster.md.

    python tools/dev/count_corrections.py PREDICTIONS.json LABELS [--thresholds 0.3 0.4 0.5]

LABELS is a folder of images and of labels without mistakes, in any format that ``ptnt new`` reads.
A predicted box is that of an object if their IoU is 0.5 or more, the best score first. From 0.75
on, it can stay as it is.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pycocotools import mask as coco

from ptnt_mm.labels.model import LabelledObject, box_between
from ptnt_mm.labels.recognise import read_labels, recognise
from ptnt_mm.labels.tree import Tree
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


def main(words: Sequence[str] | None = None) -> None:
    """Print the number of images and objects, and a row for each threshold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('predictions', type=Path)
    parser.add_argument('labels', type=Path)
    parser.add_argument('--thresholds', type=float, nargs='+', default=(0.3, 0.4, 0.5))
    args = parser.parse_args(words)
    tree = Tree(args.labels)
    labelled = {image.path.name: image for image in read_labels(tree, recognise(tree)).images}
    predicted = json.loads(args.predictions.read_text(encoding='utf-8'))['images']
    pairs = [
        (entry['detections'], labelled[name].objects)
        for entry in predicted
        if (name := Path(entry['file']).name) in labelled
    ]
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
    main()
