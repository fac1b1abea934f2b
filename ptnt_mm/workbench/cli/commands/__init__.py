"""The commands of ``ptnt``, a module each.

``COMMAND`` declares it. From there come the flags and their help, the completion of shells, and the
tables in ``docs/options.md``. A new option is a line in the ``keywords`` of its command, and a
keyword argument of the function, whose docstring repeats the sentence; a test compares the two. A
sentence names other arguments between backquotes, as errors do; the help shows their flags.

``run`` gets the parsed arguments, calls the API, and prints. It returns the exit status, None for
0. Help imports all modules, so what is not in Python itself is imported there.
"""

from argparse import Namespace
from importlib import import_module
from pkgutil import iter_modules

from ptnt_mm.workbench.cli.arguments import Command

_modules = [import_module(f'{__name__}.{module.name}') for module in iter_modules(__path__)]
_MODULES = {
    module.COMMAND.name: module for module in sorted(_modules, key=lambda m: m.COMMAND.order)
}

COMMANDS: dict[str, Command] = {name: module.COMMAND for name, module in _MODULES.items()}
"""By name, in the order of ``ptnt --help``."""


def run(name: str, args: Namespace) -> int | None:
    """Run a command on its parsed arguments; return its exit status."""
    return _MODULES[name].run(args)
