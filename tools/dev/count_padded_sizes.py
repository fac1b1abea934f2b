"""Count how many sizes batches have, and what a coarser padding step adds to their area.

    python tools/dev/count_padded_sizes.py [--annotations instances_train2017.json] [--batch 2]

Images are resized as in the 1x schedules, to a short side of 800 pixels and a long one of at most
1333, and batched by aspect ratio as mmdet does. Without a COCO file, 100,000 sizes like COCO's are
drawn: a long side of 640 pixels, a short one of 480 for half of them and of 360 to 640 for the
others, and a quarter of all upright.
"""

import json
import random
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ptnt_mm.cli.options import positive
from ptnt_mm.cli.start import Parser
from ptnt_mm.utils.tables import new_table, to_text

Size = tuple[int, int]
SHORT, LONG = 800, 1333


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('--annotations', type=Path, metavar='FILE')
    parser.add_argument('--batch', type=positive, default=2, metavar='B')
    parser.add_argument('--steps', type=positive, nargs='+', default=[32, 64, 128, 160, 320])
    return parser.run(print_counts, words)


def print_counts(args: Namespace) -> None:
    """Print the table."""
    random.seed(0)
    sizes = like_coco(100_000) if args.annotations is None else sizes_in(args.annotations)
    found = list(batched(map(resized, sizes), args.batch))
    table = new_table('step', 'sizes', 'share of the 8 most frequent', 'area', 'most frequent')
    first = None
    for step in args.steps:
        padded = [tuple(-(-side // step) * step for side in size) for size in found]
        area = sum(height * width for height, width in padded)
        first = first or area
        common = Counter(padded).most_common(8)
        share = sum(number for _, number in common) / len(padded)
        height, width = common[0][0]
        table.add_row(
            *map(str, (step, len(set(padded)), f'{share:.1%}', f'{area / first:.3f}')),
            f'{height} x {width}',
        )
    print(to_text(table))


def like_coco(number: int) -> Iterator[Size]:
    """Heights and widths in pixels, as described above."""
    for _ in range(number):
        short = 480 if random.random() < 0.5 else random.randint(360, 640)
        yield (640, short) if random.random() < 0.25 else (short, 640)


def sizes_in(annotations: Path) -> list[Size]:
    """Heights and widths of the images of a COCO file, in random order."""
    images = json.loads(annotations.read_text(encoding='utf-8'))['images']
    random.shuffle(images)
    return [(image['height'], image['width']) for image in images]


def resized(size: Size) -> Size:
    """The size after mmdet's ``Resize`` with ``keep_ratio``."""
    factor = min(LONG / max(size), SHORT / min(size))
    return int(size[0] * factor + 0.5), int(size[1] * factor + 0.5)


def batched(sizes: Iterator[Size], batch: int) -> Iterator[Size]:
    """The largest sides of each batch of images that are all wide, or all upright."""
    waiting: dict[bool, list[Size]] = {False: [], True: []}
    for height, width in sizes:
        group = waiting[width < height]
        group.append((height, width))
        if len(group) == batch:
            yield max(h for h, _ in group), max(w for _, w in group)
            group.clear()


if __name__ == '__main__':
    sys.exit(main())
