"""Inspect, convert or publish a checkpoint, without running any code in it.

ptnt checkpoint inspect ptnt_s.pth.tar
ptnt checkpoint convert epoch_12.pth weights.safetensors
ptnt checkpoint publish work_dirs/my_run/epoch_12.pth zoo/
"""

import argparse
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.cli.importing import importing
from ptnt_mm.cli.json_output import add_json, json_output
from ptnt_mm.utils.text import printable


def main(words: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    commands = parser.add_subparsers(dest='command', required=True)
    look = commands.add_parser(
        'inspect', help='show the content of a file, and whether it is complete'
    )
    convert = commands.add_parser('convert', help='write only the weights, as plain tensors')
    publish = commands.add_parser('publish', help='drop the optimizer, put the hash into the name')
    for command in (look, convert, publish):
        command.add_argument(
            'file', help='.pth, .pth.tar, .pt, .safetensors, address, or name from ptnt weights'
        )
    convert.add_argument('out', type=Path, help='a new .safetensors or .pth file')
    publish.add_argument('out', type=Path, nargs='?', help="a folder; the file's own by default")
    add_json(look)
    for command in (convert, publish):
        command.add_argument('--overwrite', action='store_true', help='replace an existing file')
    return parser


def _run(args: argparse.Namespace) -> None:
    with importing():
        from ptnt_mm.weights.files import (
            convert_checkpoint,
            describe_checkpoint,
            publish_checkpoint,
        )

    if args.command == 'inspect':
        with json_output(args.json, args.overwrite) as write:
            described = dict(describe_checkpoint(args.file))
            for name, value in described.items():
                print(f'{name + ":":<13} {printable(str(value), 1000)}')
            write(described)
        return
    write = convert_checkpoint if args.command == 'convert' else publish_checkpoint
    print(f'wrote {write(args.file, args.out, args.overwrite)}')
