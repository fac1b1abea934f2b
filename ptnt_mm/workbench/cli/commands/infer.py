"""``ptnt infer``: predict on images, a folder, a video or a webcam."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.arguments import Argument, Command, Option, Switch
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import (
    CHECKPOINT,
    DEVICE,
    config_and_checkpoint_of,
    config_words,
)
from ptnt_mm.workbench.cli.values import number, score, tile
from ptnt_mm.workbench.config.zoo import PROJECT_CONFIG
from ptnt_mm.workbench.data.writers import WRITER_NAMES

if TYPE_CHECKING:
    from ptnt_mm.workbench.inference.source import Source

# fmt: off
COMMAND = Command(
    'infer',
    'predict on images, a folder, a video or a webcam',
    """Detect, segment or classify on images, a video or a webcam: drawn pictures and JSON.

ptnt infer photos retinanet_ptnt_s_1x work_dirs/retinanet_ptnt_s_1x/epoch_12.pth
ptnt infer photos model.onnx
""",
    words=(
        Argument('source', 'an image, a folder, a video, or 0 for the first webcam',
                 metavar='input'),
        *config_words('model.test_cfg.max_per_img=20'),
        CHECKPOINT,
    ),
    keywords=(
        Option('out', 'output folder: by default PROJECT/infer/INPUT or work_dirs/infer/INPUT',
               Path, metavar='DIR'),
        Switch('overwrite', 'replace the results of an earlier run'),
        Option('score_thr', 'lowest score of predictions in pictures and JSON: by default 0.3 for '
               'detectors, 0 for classifiers; segmenters have no scores and refuse it', score,
               metavar='S'),
        Switch('draw', 'write no pictures', default=True, flags=('--no-draw',)),
        Option('labels', 'also write what a detector finds as label files, to correct them in '
               'CVAT, Label Studio or LabelMe', choices=WRITER_NAMES),
        Option('tile', 'cut larger images into tiles of this side and merge their objects; for '
               'detectors. By default as in evaluations with the config; 0 for whole images',
               tile, metavar='PIXELS'),
        Option('overlap', 'share of a tile that overlaps the next one: 0.2 by default',
               number(float, 'a number from 0 and below 1', lambda value: 0 <= value < 1),
               metavar='SHARE'),
        Switch('track', 'give each object one number through a video or a folder of frames; needs '
               'the package trackers'),
        Switch('show', 'show a video or a webcam in a window; q ends it'),
        DEVICE,
    ),
    order=5,
)
# fmt: on


def check_arguments(args: Namespace) -> None:
    """Refuse a wrong source, and options that do not fit it."""
    from ptnt_mm.deploy.export_info import SUFFIXES
    from ptnt_mm.workbench.export.format_names import FORMATS
    from ptnt_mm.workbench.inference.options import check_options
    from ptnt_mm.workbench.inference.source import Source

    source = Source(args.source)
    if Path(args.config).suffix == FORMATS['torch-export']:
        raise UserError(
            f'{args.config} is for torch.export.load, and ptnt infer cannot run it: expected a '
            f'config, or an exported file that ends in {" or ".join(SUFFIXES)}'
        )
    if Path(args.config).suffix in SUFFIXES and (
        args.checkpoint or args.cfg_options or args.device
    ):
        raise UserError(
            'expected a config and a checkpoint, or only an exported file, without --cfg-options '
            'and --device'
        )
    names = ('overwrite', 'labels', 'tile', 'overlap', 'track', 'show')
    check_options(source, _out(args, source), **{name: getattr(args, name) for name in names})


def run(args: Namespace) -> None:
    """Run inference."""
    with importing():
        from ptnt_mm.deploy.export_info import SUFFIXES
        from ptnt_mm.workbench.inference.infer import infer
        from ptnt_mm.workbench.inference.source import Source

    config, checkpoint, name = None, args.config, None
    if Path(args.config).suffix not in SUFFIXES:
        config, checkpoint = config_and_checkpoint_of(args)
        name = args.config
    args.out = _out(args, Source(args.source))
    infer(config, checkpoint, args.source, **COMMAND.given(args), config_name=name)


def _out(args: Namespace, source: 'Source') -> Path:
    """The folder of the results: by default that of a project, if it is one."""
    out = args.out or source.default_out
    is_project = args.out is None and Path(args.config, PROJECT_CONFIG).is_file()
    return Path(args.config, 'infer', out.name) if is_project else out
