"""Draw the predictions of the demo's model, and its training curves."""

import argparse
import sys
from pathlib import Path

import light_start  # noqa: F401
from demo.confusion import draw_confusion
from demo.contact_sheet import draw_detections, draw_maps
from ptnt_mm.cli.arguments import Parser, positive
from ptnt_mm.demo.dataset import PALETTE
from ptnt_mm.demo.scenes import CLASSES
from ptnt_mm.drawing.curves import draw_curves
from ptnt_mm.drawing.figures import fractions
from ptnt_mm.utils.errors import UserError


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('work_dir', nargs='?', type=Path, default=Path('work_dirs/demo'))
    parser.add_argument(
        '--results',
        type=Path,
        help="COCO results (<outfile_prefix>.bbox.json of mmdet's CocoMetric), a folder of maps "
        "(output_dir of mmseg's IoUMetric), or a classifier's predictions.json, of tools/infer.py; "
        'without them only the curves are drawn',
    )
    parser.add_argument(
        '--annotations', type=Path, default=Path('data/demo/annotations/instances_val.json')
    )
    parser.add_argument('--maps', type=Path, default=Path('data/demo/semantic/val'))
    parser.add_argument('--image-folder', type=Path, default=Path('data/demo/val'))
    parser.add_argument('--score-thr', type=float, default=0.4)
    parser.add_argument('--num-images', type=positive, default=10)
    return parser.run(draw_figures, words)


def draw_figures(args: argparse.Namespace) -> None:
    """Draw the figures and print their paths, or raise a UserError about a missing file."""
    needed = [args.results, args.image_folder] if args.results else []
    if args.results and args.results.suffix == '.json' and args.results.name != 'predictions.json':
        needed.append(args.annotations)
    for path in needed:
        if not path.exists():
            raise UserError(f'{path}: there is no such file or folder')
    print(f'Curves: {draw_curves(args.work_dir, args.work_dir / "curves.png")}')
    if args.results is None:
        return
    if args.results.name == 'predictions.json':
        sheet = args.work_dir / 'confusion.png'
        print(f'Confusion: {draw_confusion(args.results, args.image_folder, sheet)}')
        return
    sheet = args.work_dir / 'predictions.png'
    if args.results.is_dir():
        names = ('background', *CLASSES)
        colours = {name: fractions(rgb) for name, rgb in zip(names, PALETTE, strict=True)}
        draw_maps(args.image_folder, args.maps, args.results, colours, sheet, args.num_images)
    else:
        files = (args.annotations, args.image_folder, args.results, sheet)
        draw_detections(*files, args.score_thr, args.num_images)
    print(f'Contact sheet: {sheet}')


if __name__ == '__main__':
    sys.exit(main())
