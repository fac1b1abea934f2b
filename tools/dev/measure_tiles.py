"""AP with and without tiles, on large fields that are made of small images: docs/inference.md.

    python tools/dev/measure_tiles.py CONFIG CHECKPOINT FIELDS [--grid 4] [--tile 640] \
        [--exported MODEL.onnx]

As a slide scanner does, it joins GRID x GRID images of the config's test data that have one size
to a field; FIELDS is the folder for them. Objects keep their places and areas.
"""

import json
import sys
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import cv2
import numpy as np
from pycocotools.coco import COCO

from ptnt_mm.cli.start import Parser
from ptnt_mm.config.read import read_config
from ptnt_mm.engine.coco_evaluation import FullCocoEval
from ptnt_mm.inference.load import load_exported, load_predictor
from ptnt_mm.inference.predictor import Predictor
from ptnt_mm.labels.model import box_between
from ptnt_mm.options import positive
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import markdown
from ptnt_mm.utils.tiles import Tiling

_LOWEST = 0.05  # of the scores that count
_MOST = 5_000  # detections in a field
_AREAS = ('all', 'small', 'medium', 'large')
_OF_AREAS = [0, 3, 4, 5]  # among COCO's twelve numbers


def make_fields(data: COCO, images: Path, grid: int, folder: Path) -> Path:
    """Join images (H, W) of one size to fields (grid * H, grid * W); return their COCO file.

    Raises:
        UserError: if there are too few images of one size.
    """
    folder.mkdir(parents=True, exist_ok=True)
    of_size = defaultdict(list)
    for image in data.imgs.values():
        of_size[image['height'], image['width']].append(image)
    fields, objects = [], []
    for (height, width), alike in of_size.items():
        for first in range(0, len(alike) - grid**2 + 1, grid**2):
            members = alike[first : first + grid**2]
            name = f'field_{len(fields)}.png'
            size = dict(height=grid * height, width=grid * width)
            field = np.zeros((*size.values(), 3), np.uint8)
            for place, image in enumerate(members):
                top, left = height * (place // grid), width * (place % grid)
                pixels = cv2.imread(str(images / image['file_name']))
                field[top : top + height, left : left + width] = pixels
                for item in data.imgToAnns[image['id']]:
                    x, y, *sides = item['bbox']
                    moved = dict(
                        image_id=len(fields), id=len(objects) + 1, bbox=[x + left, y + top, *sides]
                    )
                    objects.append({**item, **moved, 'segmentation': []})
            cv2.imwrite(str(folder / name), field)
            fields.append(dict(id=len(fields), file_name=name, **size))
    if not fields:
        raise UserError(f'{grid} x {grid} images of one size are needed, and there are fewer')
    file = folder / 'fields.json'
    content = dict(images=fields, annotations=objects, categories=data.dataset['categories'])
    file.write_text(json.dumps(content))
    return file


def detect(predictor: Predictor, fields: COCO, folder: Path) -> tuple[list[dict], float]:
    """COCO's results of all fields, and the seconds that a field takes."""
    numbers = {item['name']: number for number, item in fields.cats.items()}
    results, seconds = [], 0.0
    for image in fields.imgs.values():
        loaded = predictor.load(folder / image['file_name'])
        start = time.perf_counter()
        sample = predictor.predict(loaded)
        seconds += time.perf_counter() - start
        results += [
            dict(
                image_id=image['id'],
                category_id=numbers[found['label']],
                bbox=box_between(*found['box']),
                score=found['score'],
            )
            for found in predictor.describe(sample)['detections']
        ]
    return results, seconds / len(fields.imgs)


def average_precision(fields: COCO, results: list[dict]) -> dict[str, float]:
    """AP of boxes for each range of areas, -1 without objects."""
    evaluation = FullCocoEval(fields, fields.loadRes(results), 'bbox')
    evaluation.params.maxDets[-1] = _MOST
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return dict(zip(_AREAS, evaluation.stats[_OF_AREAS].tolist(), strict=True))


def main(words: Sequence[str] | None = None) -> int:
    """Run the tool; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('config', help='a config, or a project of ptnt new')
    parser.add_argument('checkpoint')
    parser.add_argument('fields', type=Path, help='a new folder')
    parser.add_argument('--grid', type=positive, default=4, help='images in a row: 4')
    parser.add_argument('--tile', type=positive, default=640, help='side of a tile: 640')
    parser.add_argument('--exported', type=Path, help='the same model as a file of ptnt export')
    return parser.run(print_precision, words)


def print_precision(args: Namespace) -> None:
    """Print a row for the shrunk fields, for tiles, and for tiles with an exported file."""
    config = read_config(args.config)
    data = config.test_dataloader.dataset
    root, prefix = Path(data.get('data_root') or ''), data.data_prefix.img
    with redirect_stdout(StringIO()):  # pycocotools reports its progress
        labels = COCO(str(root / data.ann_file))
        file = make_fields(labels, root / prefix, args.grid, args.fields)
        fields = COCO(str(file))
    tiled = load_predictor(config, args.checkpoint, 'cpu', _LOWEST)
    config.merge_from_dict({'model.test_cfg.max_per_img': _MOST})
    shrunk = load_predictor(config, args.checkpoint, 'cpu', _LOWEST)
    contenders = {'shrunk': shrunk, 'tiles': tiled}
    if args.exported is not None:
        contenders['tiles, exported'] = load_exported(args.exported, _LOWEST)
    rows = []
    for name, predictor in contenders.items():
        if predictor is not shrunk:
            predictor.tile(Tiling(args.tile))
        results, seconds = detect(predictor, fields, args.fields)
        with redirect_stdout(StringIO()):
            scores = average_precision(fields, results).values()
        values = ['–' if value < 0 else f'{100 * value:.1f}' for value in scores]
        rows.append([name, *values, f'{len(results) / len(fields.imgs):.0f}', f'{seconds:.2f}'])
    print(f'{len(fields.imgs)} fields with {len(fields.anns):,} objects\n')
    print(markdown(['', 'AP', *_AREAS[1:], 'objects found', 'seconds'], rows))


if __name__ == '__main__':
    sys.exit(main())
