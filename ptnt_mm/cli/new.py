"""Create a training setup from a folder of labelled images in any common format.

ptnt new photos/bccd bccd
ptnt train bccd
"""

import argparse
import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.cli.importing import importing
from ptnt_mm.utils.console import show
from ptnt_mm.utils.findings import Severity, closing, lines, of_kind
from ptnt_mm.utils.terminal import say


def main(words: list[str] | None = None) -> int:
    """Create a project; return 1 if its check finds errors."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    parser.add_argument('data', type=Path, help='the folder of images and labels; only read')
    parser.add_argument('folder', type=Path, help='the project to create: a config and labels')
    parser.add_argument(
        '--format',
        help='coco, voc, yolo, cvat, labelme, object-masks, class-masks, numbered-masks or '
        'folders; recognised by default',
    )
    parser.add_argument(
        '--task',
        help='detection, instance, semantic or classification; by default the one '
        'that uses most of the labels',
    )
    parser.add_argument(
        '--detector',
        metavar='NAME',
        help='gfl, atss, tood, rtmdet, retinanet or cascade for boxes; mask_rcnn, condinst, solov2 '
        'or rtmdet_ins for masks; semantic_fpn, segformer or upernet for class masks; the first '
        'of each by default',
    )
    parser.add_argument(
        '--backbone',
        help='such as ptnt_s, tnt_s, efficientnet_lite0, resnet18, swin_t, or a registered class '
        'with its arguments; by default one whose pretrained weights can be had',
    )
    parser.add_argument(
        '--weights',
        metavar='WEIGHTS',
        help='weights of the backbone: a file, an address, a name from ptnt weights, '
        "'published', or 'none' for random initialisation; by default the published ones, if "
        'they can be had',
    )
    parser.add_argument(
        '--size', type=int, metavar='PIXELS', help='the longer side of images in training, from 32'
    )
    parser.add_argument('--epochs', type=int, help='number of passes through the images')
    parser.add_argument(
        '--val-share',
        type=float,
        metavar='SHARE',
        help='the share of the images to validate with, 0.2 by default, if the data has no '
        'validation split',
    )
    return parser


def _run(args: argparse.Namespace) -> int:
    with importing():
        from ptnt_mm.api import check, create_project, read_config
        from ptnt_mm.project.backbones import offered

    file = create_project(
        args.data,
        args.folder,
        format=args.format,
        task=args.task,
        detector=args.detector,
        backbone=args.backbone,
        weights=args.weights,
        size=args.size,
        epochs=args.epochs,
        val_share=args.val_share,
        on_line=say,
    )
    say(f'{file}: the config; a comment next to each setting gives its reason')
    found = check(read_config(file))
    wrong = [finding for finding in found if finding.severity in (Severity.ERROR, Severity.WARNING)]
    say('\n'.join(('ptnt check:', *lines(wrong))), column=11)
    show(f'  {closing(found)}')
    say('\n'.join(_starts(offered())))
    errors = of_kind(found, Severity.ERROR)
    show(_correct_first(args.folder) if errors else _next(args.folder))
    return int(bool(errors))


def _starts(found: Iterable[tuple[str, float, str]]) -> Iterator[str]:
    """The pretrained backbones, by how they can be had."""
    yield 'Pretrained starts, by --backbone, with top-1 on ImageNet (or random, by --weights none):'
    by_source = sorted(found, key=lambda row: (row[2] != 'here', row[2]))
    for source, rows in groupby(by_source, itemgetter(2)):
        yield f'  {source}: {", ".join(f"{name} {top_1}" for name, top_1, _ in rows)}'


def _correct_first(folder: Path) -> str:
    """The next step after errors."""
    command = f'ptnt check {shlex.quote(str(folder))}'
    return f'Next: correct the errors above, then check again:\n  {command}'


def _next(folder: Path) -> str:
    """The commands that follow."""
    words = ('train', 'test', 'report', 'infer PHOTOS')
    lines = [f'  ptnt {word} {shlex.quote(str(folder))}' for word in words]
    lines.append(f'  ptnt export {shlex.quote(str(folder))} --out model.onnx')
    return '\n'.join(('Next:', *lines))
