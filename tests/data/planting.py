"""Plant faults in sample data sets, as they may occur in a user's folder."""

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

ESCAPE = '../../../../etc/passwd.png'


def planted(function: Callable) -> Callable[..., Callable[[Path], None]]:
    """Make a function of a folder from the arguments before it."""
    return lambda *arguments: partial(function, *arguments)


def first(root: Path, pattern: str) -> Path:
    return sorted(root.rglob(pattern))[0]


@planted
def rewrite(pattern: str, old: str, new: str, root: Path) -> None:
    """Replace the first match of an expression in the first file of a name."""
    file = first(root, pattern)
    text = file.read_text()
    changed = re.sub(old, lambda _: new, text, count=1, flags=re.DOTALL)
    assert changed != text, f'{old} is not in {file}'
    file.write_text(changed)


@planted
def replace(pattern: str, content: bytes, root: Path) -> None:
    first(root, pattern).write_bytes(content)


@planted
def remove(pattern: str, root: Path) -> None:
    first(root, pattern).unlink()


@planted
def cut(pattern: str, root: Path) -> None:
    file = first(root, pattern)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@planted
def resize(pattern: str, root: Path) -> None:
    file = first(root, pattern)
    Image.open(file).resize((30, 20)).save(file)


@planted
def turn(pattern: str, root: Path) -> None:
    """Give a picture an EXIF entry that rotates it."""
    file = first(root, pattern)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(file).save(file, exif=exif)


@planted
def copy_as(pattern: str, name: str, root: Path) -> None:
    target = root / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(first(root, pattern), target)


def link_up(root: Path) -> None:
    (root / 'loop').symlink_to(root, target_is_directory=True)


@planted
def edit(pattern: str, change: Callable[[Any], None], root: Path) -> None:
    file = first(root, pattern)
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def put(*path: Any) -> Callable[[Any], None]:
    """Set the value at a path of keys; the last is the value."""

    def change(content: Any) -> None:
        *keys, last, value = path
        for key in keys:
            content = content[key]
        content[last] = value

    return change


def drop(*path: Any) -> Callable[[Any], None]:
    def change(content: Any) -> None:
        *keys, last = path
        for key in keys:
            content = content[key]
        del content[last]

    return change
