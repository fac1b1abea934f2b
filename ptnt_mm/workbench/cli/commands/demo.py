"""``ptnt demo``: create the demo data set, without a download."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.workbench.cli.arguments import Argument, Command, Option, Switch
from ptnt_mm.workbench.cli.values import positive, seed

# fmt: off
COMMAND = Command(
    'demo',
    'create the demo data set, without a download',
    """Create the demo data set: a few hundred pictures in COCO format, without a download.

ptnt demo
ptnt train demo_retinanet_ptnt_ti
""",
    words=(
        Argument('folder', 'data/demo by default', Path, Path('data/demo'), nargs='?'),
        Option('train', 'training pictures: 240 by default', positive, 240),
        Option('val', 'validation pictures: 60 by default', positive, 60),
        Option('seed', 'seed of every random choice: 0 by default', seed, 0),
        Switch('overwrite', 'replace a demo data set made with other arguments, or changed since'),
    ),
    order=14,
)
# fmt: on


def run(args: Namespace) -> None:
    """Create the demo data set."""
    from ptnt_mm.workbench.data.demo.dataset import DemoSpec, make_demo_data

    print(make_demo_data(args.folder, DemoSpec(args.train, args.val, args.seed), args.overwrite))
