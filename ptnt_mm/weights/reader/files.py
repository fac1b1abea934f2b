"""Whether a path can be that of a checkpoint; needs no torch, so that the answer comes at once."""

import os
import zipfile
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError

_HEAD = 512  # bytes of a file that identify its format


def is_hub_address(path: object) -> bool:
    """Whether this begins as the address of a hub does."""
    return str(path).startswith('hf:')


def is_address(checkpoint: str | Path) -> bool:
    """Whether this is the address of a checkpoint and not the path of a file."""
    return '://' in str(checkpoint) or is_hub_address(checkpoint)


def require_checkpoint(checkpoint: str | Path) -> None:
    """Raise a CheckpointError as :func:`check_file` for a path; an address is not opened."""
    if not is_address(checkpoint):
        check_file(Path(checkpoint).expanduser())


def is_mindspore_file(file: Path) -> bool:
    """Whether a file is MindSpore's; other programs write ``.ckpt`` files too."""
    with file.open('rb') as stream:
        return file.suffix == '.ckpt' and stream.read(1) == b'\n'


def check_written(file: Path) -> None:
    """Raise a UserError unless a file of weights has a suffix that we write."""
    if file.suffix not in ('.safetensors', '.pth'):
        raise UserError(f'{file}: expected a name that ends in .safetensors or .pth')


def publishing_folder(file: str, folder: Path | None) -> Path:
    """The folder that a checkpoint is published in, by default its own.

    Raises:
        UserError: if there is no such folder.
    """
    if folder is None and is_address(file):
        raise UserError(f'{file} is an address: specify a folder for the new file')
    folder = folder or Path(file).parent
    if not folder.is_dir():
        raise UserError(f'{folder} is not a folder: create it, or specify another')
    return folder


def check_file(path: Path) -> None:
    """Raise a CheckpointError with the kind of a path that is certainly not a checkpoint."""
    head = b''
    # Opening a pipe or a device would block; the files of /proc have size 0.
    is_file = os.path.isfile(path)
    try:
        if is_file and path.stat().st_size:
            with path.open('rb') as file:
                head = file.read(_HEAD)
    except OSError as error:
        raise CheckpointError(f'{path}: cannot be read ({error.strerror})') from error
    page = head.lstrip().lower().startswith((b'<!doctype', b'<html', b'<?xml'))
    # Bytes that are not text become unprintable characters.
    text = head.decode(errors='surrogateescape')
    if len(head) == _HEAD:
        text = text[:-3]  # the last character may be cut in two
    is_text = all(character.isprintable() or character.isspace() for character in text)
    tensors = head[8:9] == b'{' and path.suffix != '.safetensors'
    for is_so, what in (
        (os.path.isdir(path), 'is a folder; pass the checkpoint file inside it'),
        (not os.path.exists(path), 'no such file'),
        (not is_file, 'is a pipe, a socket or a device, not a file'),
        (not head, 'is empty; download it again'),
        (head.startswith(b'version https:'), "is a git-lfs pointer; run 'git lfs pull' to get it"),
        (page, 'is a web page; download the checkpoint by a direct link'),
        (head[:2] == b'PK' and not _is_archive(path), 'is truncated or damaged; download it again'),
        (tensors, f'is a safetensors file; rename it to {path.stem}.safetensors'),
        (is_text, 'is a text file, not a checkpoint'),
    ):
        if is_so:
            raise CheckpointError(f'{path}: {what}')


def _is_archive(path: Path) -> bool:
    """Whether a file ends as a ZIP archive does."""
    try:
        return zipfile.is_zipfile(path)
    except zipfile.BadZipFile:  # Python raises it for a damaged end of a large archive
        return False


def remove(path: Path) -> None:
    """Remove a file from the cache: the link in a snapshot, and the content that it leads to."""
    for each in (path.resolve(), path):
        each.unlink(missing_ok=True)
