"""Read a checkpoint from a file or an address, without running any code in it."""

import hashlib
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlparse
from urllib.request import Request, urlopen

import torch
from mmengine.dist import barrier, get_rank

from ptnt_mm.utils.atomic_files import sha256, temporary_name
from ptnt_mm.weights.reader import archive
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.files import (
    check_file,
    is_address,
    is_hub_address,
    is_mindspore_file,
    remove,
)

_TIMEOUT = 30.0  # seconds without an answer from a server
_IMPATIENCE = 3.0  # where a file would be useful but is not needed
_CHUNK = 2**20  # bytes of a download between two steps of its bar

# Torch's own switches: they override weights_only=False and =True in every call of torch.load.
_SAFE_SWITCH = 'TORCH_FORCE_WEIGHTS_ONLY_LOAD'
_UNSAFE_SWITCH = 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'

# Reentrant: MMEngine's loaders hold it while they call our reader.
_lock = threading.RLock()


def read_checkpoint(path: str | os.PathLike, map_location: Any = 'cpu') -> dict:
    """Read a ``.pth``, ``.pth.tar``, ``.pt``, ``.safetensors`` or MindSpore ``.ckpt`` file.

    No code in the file is run. Text that a run stored, such as its config, is returned as text.

    Args:
        path: A file, or the address of one, which is then cached in torch's hub folder. If the
            address ends in ``#sha256=`` and 8 to 64 digits, the file's hash must match them.
            ``hf:OWNER/NAME``, ``hf:OWNER/NAME@REVISION:FILE`` is a file of a Hugging Face hub.
        map_location: Where its tensors go, as in ``torch.load``.

    Returns:
        The content of the file.

    Raises:
        CheckpointError: if there is no such file, or it cannot be downloaded, is not a checkpoint,
            is damaged, or contains something that no genuine checkpoint does.
    """
    refuse_forced_unsafe_loading()
    if not is_address(path):
        return _read(local_file(path), map_location)
    if urlparse(str(path)).path.endswith('.safetensors'):
        from ptnt_mm.weights.reader.tensors_file import require_package  # rare

        require_package()
    file = _download(str(path))
    try:
        return _read(file, map_location)
    except CheckpointError as error:
        # A file that was truncated or changed in transit must not stay in the cache.
        remove(file if is_hub_address(path) else cache_path(str(path)))
        raise CheckpointError(f'{error} (it came from {path}, and was removed)') from error


def _read(file: Path, map_location: Any) -> dict:
    check_file(file)
    try:
        if file.suffix == '.safetensors':
            from ptnt_mm.weights.reader.tensors_file import load_safetensors  # rare

            return load_safetensors(file, map_location)
        if is_mindspore_file(file):
            from ptnt_mm.weights.reader.mindspore_file import load_mindspore  # rare

            return load_mindspore(file, map_location)
        checkpoint = archive.load_torch_file(file, map_location)
        if not isinstance(checkpoint, dict):
            what = type(checkpoint).__name__
            raise CheckpointError(f'contains a {what}, expected a dict of weights')
        check_described(checkpoint)
        return checkpoint
    except CheckpointError as error:
        raise CheckpointError(f'{file}: {error}') from error


@contextmanager
def reading_safely() -> Iterator[None]:
    """Replace ``torch.load`` by our reader inside the context, for third-party code.

    The whole process reads safely until the context ends. For code that kept a reference to
    ``torch.load``, torch itself enforces ``weights_only=True``. The unsafe switch is refused.
    """
    refuse_forced_unsafe_loading()
    with _lock:
        before = torch.load, os.environ.get(_SAFE_SWITCH)
        torch.load, os.environ[_SAFE_SWITCH] = archive.load_torch_file, '1'
        try:
            yield
        finally:
            torch.load = before[0]
            del os.environ[_SAFE_SWITCH]
            if before[1] is not None:
                os.environ[_SAFE_SWITCH] = before[1]


def refuse_forced_unsafe_loading() -> None:
    """Raise a CheckpointError if the environment lets ``torch.load`` run code in a file."""
    value = os.environ.get(_UNSAFE_SWITCH, '')
    if value.strip().lower() not in ('', '0', 'n', 'no', 'false', 'off'):
        raise CheckpointError(
            f'{_UNSAFE_SWITCH}={value} makes torch run whatever code a checkpoint contains. '
            f'Checkpoints load here without it: unset {_UNSAFE_SWITCH} and start again'
        )


def local_file(checkpoint: str | Path) -> Path:
    """Path of a checkpoint's file; for an address, where the download is cached."""
    if is_hub_address(checkpoint):
        return _download_from_hub(str(checkpoint))
    if is_address(checkpoint):
        return cache_path(str(checkpoint))
    return Path(os.path.expanduser(checkpoint))


def check_described(checkpoint: Mapping) -> None:
    """Raise a CheckpointError unless MMEngine's metadata of a run are dicts."""
    for name in ('meta', 'message_hub', 'message_hub.runtime_info'):
        entry = checkpoint
        for key in name.split('.'):
            entry = entry.get(key, {})
        if not isinstance(entry, dict):
            raise CheckpointError(
                f"the checkpoint's {name} is a {type(entry).__name__}, not a dict as MMEngine "
                'writes it: save only its weights, read by torch.load(..., weights_only=True)'
            )


def cache_path(url: str) -> Path:
    """The cached file of an address, unique to it, as many addresses share file names.

    Raises:
        CheckpointError: if it is not an http(s) address, or ends in a folder.
    """
    url = urldefrag(url).url
    scheme, _, path, *_ = urlparse(url)
    if scheme not in ('http', 'https'):
        raise CheckpointError(
            f'{url}: {scheme}:// cannot be read; download the file and pass its path'
        )
    if not Path(path).name:
        raise CheckpointError(f'{url}: contains no file name')
    digest = hashlib.sha256(url.encode()).hexdigest()
    return Path(torch.hub.get_dir(), 'checkpoints', f'{digest[:12]}-{Path(path).name}')


def cached_file(url: str) -> Path | None:
    """The complete file of an address in torch's hub folder, ours or torch's own; or None."""
    file = cache_path(url)
    if file.is_file():
        return file
    # Torch caches it under its bare name; a digest in the name verifies the content.
    of_torch = file.with_name(file.name.partition('-')[2])
    digest = re.search(r'-([0-9a-f]{8,64})\.', of_torch.name)
    if digest and of_torch.is_file() and sha256(of_torch).startswith(digest[1]):
        return of_torch
    return None


def is_reachable(url: str) -> bool:
    """Whether a server has the file of an address, and answers within a few seconds."""
    request = Request(urldefrag(url).url, method='HEAD')
    try:
        with urlopen(request, timeout=_IMPATIENCE):
            return True
    except (OSError, HTTPException, ValueError):
        return False


def _download(url: str) -> Path:
    """Download a file once into torch's hub folder, by the first of several processes."""
    is_first = get_rank() == 0
    try:
        file = _fetch(url) if is_first else None
    finally:
        barrier()
    return file if is_first else _fetch(url)


def _download_from_hub(address: str) -> Path:
    from ptnt_mm.weights.reader.hub import download  # rare

    return download(address)


def _fetch(url: str) -> Path:
    """The cached file of an address; downloads it first if necessary, and compares its hash."""
    if is_hub_address(url):
        return _download_from_hub(url)
    address = urldefrag(url).url
    expected = _expected_hash(url)
    file = cached_file(url)
    if file is None:
        file = cache_path(url)
        _save(address, file)
    if expected and not (found := sha256(file)).startswith(expected):
        file.unlink(missing_ok=True)
        raise CheckpointError(
            f'{address}: the downloaded file was removed, because its SHA-256 is {found}, expected '
            f'{expected}...: try again; if the hash stays the same, the file was replaced there'
        )
    return file


def _expected_hash(url: str) -> str:
    """The digits of the SHA-256 that an address ends in; empty if it has no fragment.

    Raises:
        CheckpointError: if they cannot be compared with a file.
    """
    fragment = urldefrag(url).fragment
    expected = re.fullmatch(r'sha256=([0-9a-f]{8,64})', fragment.lower())
    if fragment and not expected:
        raise CheckpointError(
            f'{url}: #{fragment} cannot be checked: expected #sha256= and 8 to 64 digits of the '
            "file's SHA-256, or no #"
        )
    return expected[1] if expected else ''


def _save(address: str, file: Path) -> None:
    """Save what an address sends as a file, completely or not at all."""
    from ptnt_mm.utils.progress import watched  # draws with rich

    file.parent.mkdir(parents=True, exist_ok=True)
    partial = temporary_name(file, 'partial')
    try:
        # Not torch.hub's function, which waits forever for a server.
        request = Request(address, headers={'User-Agent': 'ptnt_mm'})
        with urlopen(request, timeout=_TIMEOUT) as answer, partial.open('wb') as saved:
            chunks = iter(lambda: answer.read(_CHUNK), b'')
            number = int(answer.headers.get('Content-Length', 0)) // _CHUNK + 1
            for chunk in watched(chunks, number, f'Downloading {file.name}'):
                saved.write(chunk)
        os.replace(partial, file)
    except (OSError, HTTPException, ValueError) as error:
        raise CheckpointError(
            f'{address}: cannot be downloaded ({error}). Download it in some other way and '
            f'pass the path of the file, or put it at {file}'
        ) from error
    finally:
        partial.unlink(missing_ok=True)
