"""The commands of ``ptnt``, a module each.

``COMMAND`` declares it. From there come the flags and their help, the completion of shells, and the
tables in ``docs/options.md``. A new option is a line in the ``keywords`` of its command, and a
keyword argument of the function, whose docstring repeats the sentence; a test compares the two. A
sentence names other arguments between backquotes, as errors do; the help shows their flags.

``run`` gets the parsed arguments, calls the API, and prints. It returns the exit status, None for
0. Before it, ``check_arguments`` refuses what can be seen to be wrong without torch, which takes
seconds to import; ``given.py`` checks files and folders by the names of their arguments. Help
imports all modules, so both functions import what needs other packages.
"""

from argparse import Namespace
from importlib import import_module
from operator import attrgetter

from ptnt_mm.utils.declarations import declared, names_in
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.arguments import Command

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in sorted(
        declared(__name__, names_in(__path__), 'COMMAND'), key=attrgetter('order', 'name')
    )
}
"""By name, in the order of ``ptnt --help``."""


def run(name: str, args: Namespace) -> int | None:
    """Check the parsed arguments of a command, and run it; return its exit status."""
    from ptnt_mm.workbench.cli.given import check_given

    command = import_module(f'{__name__}.{name.replace("-", "_")}')
    try:
        check_given(args)
        if hasattr(command, 'check_arguments'):
            command.check_arguments(args)
    except OSError as error:  # of a path, such as a name that is too long
        raise UserError(f'{error.filename}: {error.strerror}') from error
    return command.run(args)
