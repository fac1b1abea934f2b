"""``ptnt mmcv-ops``: provide mmcv's operators to all programs."""

from argparse import Namespace

from ptnt_mm.workbench.cli.arguments import Argument, Command

# fmt: off
COMMAND = Command(
    'mmcv-ops',
    "provide mmcv's operators to all programs",
    """Provide mmcv.ops to all programs of this Python if mmcv is not compiled.

ptnt mmcv-ops install
""",
    words=(
        Argument('action', 'status tries import mmcv.ops', choices=('install', 'remove', 'status')),
    ),
    order=16,
)
# fmt: on


def run(args: Namespace) -> None:
    """Install or remove the operators, or report their provider."""
    from ptnt_mm.mmcv_ops import installation

    actions = dict(
        install=installation.install, remove=installation.remove, status=installation.status
    )
    print(actions[args.action]())
