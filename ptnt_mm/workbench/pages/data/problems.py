"""The lines of a project's ``problems.txt``, each with the image that it is about."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ptnt_mm.deploy.decoding import FORMATS

# As `data.reading.collector` writes them: the image of an object, and before it the box, which is
# x, y, width and height.
_IMAGE = re.compile(rf'.*\bin (.+?(?:{"|".join(map(re.escape, FORMATS))}))(?!\w)', re.IGNORECASE)
_BOX = re.compile(r'\[([-+.\de]+(?:, [-+.\de]+){3})\] in ')


@dataclass
class ProblemsOfImage:
    """The problems of an image."""

    image: Path | None  # None if they are not about an image, or about one that is not known
    name: str  # the file that they are in, as written
    lines: list[str] = field(default_factory=list)
    boxes: list[tuple[float, ...]] = field(default_factory=list)  # x, y, width, height in pixels


def group_problems(text: str, folder: Path | None, known: Iterable[Path]) -> list[ProblemsOfImage]:
    """Group the lines of ``problems.txt`` by image.

    Args:
        text: The content of the file.
        folder: The folder of the data, to which its paths are relative.
        known: Images that label files may mean: the image of a problem is the file itself, one
            that its text names, or the one with the name of the label file.
    """
    by_name: dict[str, Path] = {}
    by_stem: dict[str, Path] = {}
    known = dict.fromkeys(known)  # in their order
    for path in known:
        by_name.setdefault(path.name, path)
        by_stem.setdefault(path.stem, path)
    groups: dict[Path | str, ProblemsOfImage] = {}
    for line in filter(None, text.splitlines()):
        file, _, what = line.partition(': ')
        own = Path(file) if folder is None else folder / file
        named = _IMAGE.match(what)
        if own.suffix.lower() in FORMATS:
            image = own if own.is_file() else None
        else:
            name = Path(named[1] if named else '')
            whole = Path(folder or '', name)
            image = whole if whole in known else by_name.get(name.name) or by_stem.get(own.stem)
        group = groups.setdefault(image or file, ProblemsOfImage(image, file))
        group.lines.append(what)
        if image is not None and (box := _BOX.search(what)):
            x, y, width, height = map(float, box[1].split(', '))
            # Negative sides are a problem too: the page draws them between the same corners.
            corner = min(x, x + width), min(y, y + height)
            group.boxes.append((*corner, abs(width), abs(height)))
    return list(groups.values())
