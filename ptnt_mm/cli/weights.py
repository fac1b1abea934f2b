"""List the published weights of this family, which --pretrained downloads by name.

ptnt weights
ptnt train retinanet_tnt_s_1x --pretrained tnt_s
"""

import argparse

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.cli.importing import importing
from ptnt_mm.cli.json_output import add_json, json_output
from ptnt_mm.utils.tables import new_listing, to_text

_NOTE = """
top-1 is the percentage on ImageNet-1k that the publisher reports. MB is 4 bytes for each parameter
of the classifier. SHA-256 has the published digits, - where there are none. Download: direct by
--pretrained NAME; a page to open in a browser with the password; none was published."""


def main(words: list[str] | None = None) -> int:
    """Print the table; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    add_json(parser)
    return parser


def _run(args: argparse.Namespace) -> None:
    with importing():
        from ptnt_mm.weights.published import LEADS, PUBLISHED

    table = new_listing(
        'name', 'network', 'top-1', 'MB', 'licence', 'SHA-256', 'download', 'address'
    )
    for file, network in PUBLISHED.values():
        address = file.url or 'none was published'
        password = f' (password {file.password})' if file.password else ''
        about = (file.top_1, file.megabytes, file.licence if file.url else None, file.sha256)
        link = 'page' if file.password else 'direct'
        download = link if file.url else 'none'
        cells = (file.name, network, *about, download, address + password)
        table.add_row(*('-' if cell is None else str(cell) for cell in cells))
    with json_output(args.json, args.overwrite) as write:
        print(to_text(table))
        print(_NOTE)
        print('Unconfirmed leads for PyramidTNT:')
        print(*(f'  {lead}' for lead in LEADS), sep='\n')
        write([dict(file._asdict(), network=network) for file, network in PUBLISHED.values()])
