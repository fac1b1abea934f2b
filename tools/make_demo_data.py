"""Make the demo data set: a few hundred pictures in COCO format, without any download.

ptnt demo
ptnt train demo_retinanet_ptnt_ti
"""

import sys
from pathlib import Path

from demo.dataset import DemoSpec, make
from ptnt_mm.cli.arguments import Parser
from ptnt_mm.utils.errors import UserError


def new_parser() -> Parser:
    """Make the parser of the command line."""
    defaults = DemoSpec()
    parser = Parser(__doc__)
    parser.add_argument('folder', nargs='?', type=Path, default=Path('data/demo'))
    parser.add_argument('--train', type=int, default=defaults.train, help='training pictures')
    parser.add_argument('--val', type=int, default=defaults.val, help='validation pictures')
    parser.add_argument('--seed', type=int, default=defaults.seed)
    parser.add_argument(
        '--overwrite',
        action='store_true',
        help='replace a demo data set made with other arguments, or changed since',
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = new_parser().parse_args(arguments)
    try:
        spec = DemoSpec(args.train, args.val, args.seed)
        print(make(args.folder, spec, args.overwrite))
    except UserError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('interrupted: nothing was written', file=sys.stderr)
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
