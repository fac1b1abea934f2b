"""The flag ``--json``, shared by all commands that compute numbers."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from ptnt_mm.utils.atomic_files import write_atomically


@contextmanager
def json_output(file: Path | None) -> Iterator[Callable[[Any], None]]:
    """Yield the function that writes results to a file, if there is one, or prints them for '-'.

    In that case, all other output of the block goes to standard error.
    """
    stdout, prints = sys.stdout, file == Path('-')

    def write(results: Any) -> None:
        if prints:
            print(to_json(results), file=stdout)
        elif file is not None:
            write_atomically(file, to_json(results) + '\n')

    with redirect_stdout(sys.stderr if prints else stdout):
        yield write


def to_json(results: Any) -> str:
    """Standard JSON, with null for NaN and infinity."""
    text = json.dumps(results, default=float)  # NumPy's numbers
    return json.dumps(json.loads(text, parse_constant=lambda name: None), indent=2)
