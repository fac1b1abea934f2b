"""Walk through a folder of images."""

import os
from collections.abc import Iterator
from pathlib import Path

from ptnt_mm.workbench.data.predictions import DRAWN, FILE, is_predictions


def walk(root: Path) -> Iterator[tuple[Path, list[str], bool]]:
    """Walk through a folder and the folders in it, also those that links lead to.

    Hidden files and folders are left out, links to a folder around this one, and the drawn pictures
    of ``ptnt infer``, which have the names of images and would be taken for them.

    Yields:
        A folder, the names of its files, and whether it has results of ``ptnt infer``.
    """
    seen: set[str] = set()
    own = Path(os.path.realpath(root))
    tops = [str(root)]
    # Links come last: of a folder and a link to it, the folder is listed, as its name may be that
    # of a class.
    for top in tops:
        for folder, names, files in os.walk(top):
            real = os.path.realpath(folder)
            # A link to a parent folder would never end.
            if real in seen:
                names.clear()
                continue
            seen.add(real)
            has_results = FILE in files and is_predictions(Path(folder, FILE))
            names[:] = [
                name
                for name in names
                if not name.startswith(('.', '__MACOSX')) and not (has_results and name == DRAWN)
            ]
            links = filter(os.path.islink, (os.path.join(folder, name) for name in sorted(names)))
            tops += [link for link in links if not own.is_relative_to(os.path.realpath(link))]
            yield Path(folder), [name for name in files if not name.startswith('.')], has_results
