"""``ptnt configs``: list the configs of this package, or copy one."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.workbench.cli.arguments import Argument, Command

# fmt: off
COMMAND = Command(
    'configs',
    'list the configs of this package, or copy one',
    """List the configs of this package, or copy one with its bases into a folder.

ptnt configs
ptnt configs list retinanet
ptnt configs copy retinanet_ptnt_s_1x my_configs
""",
    parts=(
        Command(
            'list',
            'print the names of all configs, or of a group',
            words=(Argument('group', 'such as retinanet', nargs='?'),),
        ),
        Command(
            'copy',
            'copy a config and its bases into a folder',
            words=(
                Argument('config', 'such as retinanet_ptnt_s_1x'),
                Argument('folder', 'the folder to copy them to', Path),
            ),
        ),
    ),
    order=13,
)
# fmt: on


def run(args: Namespace) -> None:
    """Print groups of configs, their names or the copied files."""
    from ptnt_mm.workbench.cli.config_groups import groups, names_in
    from ptnt_mm.workbench.config.zoo import config_names, copy_config

    if args.command == 'copy':
        lines = copy_config(args.config, args.folder)
    elif args.command == 'list':
        lines = names_in(args.group, config_names())
    else:
        lines = groups(config_names())
    print(*lines, sep='\n')
