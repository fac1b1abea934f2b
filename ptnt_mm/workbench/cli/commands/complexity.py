"""``ptnt complexity``: count parameters and multiply-adds."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.arguments import Argument, Command, Option
from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import JSON, cfg_options
from ptnt_mm.workbench.cli.values import positive
from ptnt_mm.workbench.config.zoo import find_config

# fmt: off
COMMAND = Command(
    'complexity',
    'count parameters and multiply-adds',
    """Count the parameters and multiply-adds of an arch or a config's model, part by part.

Examples:
    ptnt complexity small --shape 256 256
    ptnt complexity tnt_small --shape 224 224
    ptnt complexity retinanet_ptnt_s_1x --shape 800 1280 --json cost.json
    ptnt complexity retinanet_ptnt_s_1x --shape 800 1280 --cfg-options model.backbone.position=peg
""",
    words=(
        Argument('model', 'tiny, small, medium or base (or ti, s, m, b), tnt_small, cpvt_small or '
                 'another arch, a config file, the folder of a project or a config name'),
        cfg_options('model.backbone.arch=base'),
        Option('shape', 'image size in pixels', positive, metavar=('H', 'W'), nargs=2,
               required=True),
        Option('format', 'what to print', default='table', choices=('table', 'json')),
        *JSON,
    ),
    order=12,
)
# fmt: on


def check_arguments(args: Namespace) -> None:
    """Refuse a config that is not there."""
    if Path(args.model).suffix == '.py':
        find_config(args.model)


def run(args: Namespace) -> None:
    """Count a model's operations."""
    from ptnt_mm.utils.progress import waiting

    with importing():
        from ptnt_mm.complexity import measure_complexity
        from ptnt_mm.utils.frames import one_line
        from ptnt_mm.workbench.config.build import build_by_name
        from ptnt_mm.workbench.config.read import parse_options

    options = parse_options(args.cfg_options)
    printed = json_output(Path('-') if args.format == 'json' else None)
    with printed as print_json, json_output(args.json) as write:
        try:
            with waiting('Counting'):
                found = measure_complexity(build_by_name(args.model, options), tuple(args.shape))
        except (MemoryError, RuntimeError, ValueError) as error:
            size = 'x'.join(map(str, args.shape))
            raise UserError(f'{args.model} cannot be run at {size}: {one_line(error)}') from error
        results = {'model': args.model, **found.to_dict()}
        if args.format == 'table':
            print(found.to_table())
        print_json(results)
        write(results)
