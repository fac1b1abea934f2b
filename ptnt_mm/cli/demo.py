"""Make the demo data set: runs tools/make_demo_data.py, which the wheel carries, too."""

import sys
from importlib import import_module

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.zoo import config_root

# As when Python runs a script of that folder.
sys.path.insert(0, str(config_root().with_name('tools')))
_tool = import_module('make_demo_data')


def main(words: list[str] | None = None) -> int:
    """Make what the command line says; the exit status."""
    return _tool.main(words)


def _parser() -> Parser:
    return _tool.new_parser()
