"""``ptnt new``: create a training setup from labelled images."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.utils.findings import Severity, closing, lines, of_kind
from ptnt_mm.utils.text import from_here
from ptnt_mm.workbench.cli.arguments import Argument, Command, Option
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.values import at_least, number, patterns, positive, tile
from ptnt_mm.workbench.config.zoo import detector_names
from ptnt_mm.workbench.data.formats import FORMAT_NAMES

# fmt: off
COMMAND = Command(
    'new',
    'create a training setup from labelled images',
    """Create a training setup from a folder of labelled images in any common format.

ptnt new photos/bccd bccd
ptnt train bccd
""",
    words=(
        Argument('data', "folder of images and labels, or YOLO's data.yaml in it; only read", Path),
        Argument('folder', 'the project to create: a config and labels', Path),
    ),
    keywords=(
        Option('format', 'format of the labels; recognised from the files by default',
               names=FORMAT_NAMES),
        Option('task', 'detection, instance, semantic or classification; by default the one that '
               'uses most of the labels'),
        Option('pairs', 'patterns of the paths of images and masks, with {} for what both share: '
               "'images/{}.jpg masks/{}_m.png'; by default, their names are compared",
               patterns,
               metavar='PATTERNS'),
        Option('detector', 'the detector, segmenter or classifier; by default gfl for boxes, '
               'mask_rcnn for object masks, semantic_fpn for class masks', metavar='NAME',
               names=detector_names()),
        Option('backbone', 'such as ptnt_s, tnt_s, efficientnet_lite0, resnet18, swin_t, or a '
               'registered class with its arguments; by default one whose pretrained weights are '
               'available'),
        Option('weights', 'weights of the backbone: a file, an address, hf:OWNER/NAME, a name from '
               "ptnt weights, 'published', or 'none' for random initialisation; by default the "
               'published ones, if they are available', metavar='WEIGHTS'),
        Option('size', 'longer side of training images, at least 32; chosen by default',
               at_least(32), metavar='PIXELS'),
        Option('tile', 'side of the tiles that larger training images are cut into, at least 32, '
               'or 0 to keep images whole; by default only where small objects need it', tile,
               metavar='PIXELS'),
        Option('epochs', 'number of passes through the images; chosen by default', positive),
        Option('val_share', 'share of the images to validate on, 0.2 by default, if the data '
               'has no validation split',
               number(float, 'a number between 0 and 1', lambda value: 0 < value < 1),
               metavar='SHARE'),
        Option('like', 'a previous project: its images keep their splits, and new ones are split '
               'by the same rule', Path, metavar='PROJECT'),
    ),
    function='create_project',
    order=1,
)
# fmt: on


def check_arguments(args: Namespace) -> None:
    """Refuse a wrong folder, format, task, detector, tile or backbone."""
    from ptnt_mm.workbench.cli.given import check_config

    # NumPy and OpenCV, which other commands need not wait for here.
    from ptnt_mm.workbench.data.recognise import require_known
    from ptnt_mm.workbench.data.tiles import check_tiled
    from ptnt_mm.workbench.project.backbone_table import row_of
    from ptnt_mm.workbench.project.detectors import find_detector, task_of
    from ptnt_mm.workbench.project.folders import check_place, data_folder

    check_place(data_folder(args.data), args.folder)
    if args.like is not None:
        check_config(args.like)
    require_known(args.format, args.task)
    task = args.task
    if args.detector is not None:
        task = task or task_of(args.detector)
        find_detector(args.detector, task)
    if task is not None:
        check_tiled(args.tile, task)
    if args.backbone is not None:
        row_of(args.backbone)


def run(args: Namespace) -> int:
    """Create a project; return 1 if its check finds errors."""
    from ptnt_mm.utils.progress import heartbeat

    with heartbeat('Creating the project'):
        return _create(args)


def _create(args: Namespace) -> int:
    from ptnt_mm.utils.console import show
    from ptnt_mm.utils.progress import named, waiting
    from ptnt_mm.utils.terminal import show_wrapped
    from ptnt_mm.workbench.cli.summaries import after_new

    with named('Loading libraries'), importing():
        from ptnt_mm.utils.frames import one_line
        from ptnt_mm.workbench.check.inspection import check
        from ptnt_mm.workbench.config.read import read_config
        from ptnt_mm.workbench.pages.data.report_data import report_data
        from ptnt_mm.workbench.project.create import create_project

    file = create_project(args.data, args.folder, **COMMAND.given(args), on_line=show_wrapped)
    show_wrapped(f'{file}: the config; a comment next to each setting gives its reason')
    config = read_config(file)
    with waiting('Checking the project'):
        found = check(config)
    wrong = [finding for finding in found if finding.severity in (Severity.ERROR, Severity.WARNING)]
    show_wrapped('\n'.join(('ptnt check:', *lines(wrong))))
    show(f'  {closing(found)}')
    errors = of_kind(found, Severity.ERROR)
    try:
        with waiting('Drawing the data'):
            page = report_data(config)
        show_wrapped(
            f'{from_here(page)}: your data as the network will see it; look at it before you train'
        )
    except Exception as error:  # a project without this page is complete
        show_wrapped(f'No page about the data was written: {one_line(error)}')
    show(after_new(args.folder, config, has_errors=bool(errors)))
    return int(bool(errors))
