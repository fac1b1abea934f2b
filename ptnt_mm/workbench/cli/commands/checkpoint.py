"""``ptnt checkpoint``: inspect, convert or publish a checkpoint."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.utils.text import printable
from ptnt_mm.workbench.cli.arguments import Argument, Command
from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import FILE, JSON, REPLACE

# fmt: off
COMMAND = Command(
    'checkpoint',
    'inspect, convert or publish a checkpoint',
    """Inspect, convert or publish a checkpoint, without running any code in it.

ptnt checkpoint inspect ptnt_s.pth.tar
ptnt checkpoint convert epoch_12.pth weights.safetensors
ptnt checkpoint publish work_dirs/my_run/epoch_12.pth zoo/
ptnt checkpoint publish work_dirs/my_run/epoch_12.pth hf:OWNER/NAME
""",
    parts=(
        Command(
            'inspect',
            'show the content of a file, and whether it is complete',
            words=(FILE, *JSON),
        ),
        Command(
            'convert',
            'write only the weights, as plain tensors',
            words=(FILE, Argument('out', 'a new .safetensors or .pth file', Path), REPLACE),
        ),
        Command(
            'publish',
            'drop the optimizer, put the hash into the name',
            words=(
                FILE,
                Argument('out', "a folder, the file's own by default, or hf:OWNER/NAME", nargs='?'),
                REPLACE,
            ),
        ),
    ),
    needs_part=True,
    order=10,
)
# fmt: on


def check_arguments(args: Namespace) -> None:
    """Refuse a file that is not there, and one that would be replaced."""
    from ptnt_mm.utils.atomic_files import check_new
    from ptnt_mm.weights.published import locate
    from ptnt_mm.weights.reader.files import (
        check_written,
        is_hub_address,
        publishing_folder,
        require_checkpoint,
    )

    require_checkpoint(locate(args.file))
    if args.command == 'convert':
        check_written(args.out)
        check_new(args.out, args.overwrite)
    if args.command == 'publish' and not (args.out and is_hub_address(args.out)):
        publishing_folder(locate(args.file), args.out and Path(args.out))


def run(args: Namespace) -> None:
    """Inspect, convert or publish a checkpoint."""
    with importing():
        from ptnt_mm.weights.files import (
            convert_checkpoint,
            describe_checkpoint,
            publish_checkpoint,
        )
        from ptnt_mm.weights.reader.files import is_hub_address
        from ptnt_mm.workbench.export.hub import publish_to_hub

    if args.command == 'inspect':
        with json_output(args.json) as write:
            described = dict(describe_checkpoint(args.file))
            for name, value in described.items():
                print(f'{name + ":":<13} {printable(str(value), 1000)}')
            write(described)
        return
    if args.command == 'publish' and args.out and is_hub_address(args.out):
        page, changes = publish_to_hub(args.file, args.out, args.overwrite)
        for change in changes:
            print(f'config: {change}')
        print(f'published {page}')
        return
    write = convert_checkpoint if args.command == 'convert' else publish_checkpoint
    print(f'wrote {write(args.file, args.out and Path(args.out), args.overwrite)}')
