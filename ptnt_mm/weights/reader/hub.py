"""Download files from a Hugging Face hub.

``huggingface_hub`` does it, with its settings: ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HOME``,
``HF_HUB_OFFLINE``. It is imported at the first address that needs it.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.errors import message_of
from ptnt_mm.utils.text import first_few, printable
from ptnt_mm.version import __version__
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.files import remove

WEIGHTS = 'model.safetensors'
"""The file of weights in a repository, by the hub's convention."""

_USUAL = (WEIGHTS, 'pytorch_model.bin')
_SUFFIXES = ('.safetensors', '.pth', '.pth.tar', '.pt', '.bin', '.ckpt')  # pickles last

_ADDRESS = re.compile(
    r'hf:(?://)?(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^\s:#]+))?(?::(?P<file>[^\s#]+))?'
)
_HASH = re.compile('[0-9a-f]{64}')


class HubAddress(NamedTuple):
    """The parts of ``hf:OWNER/NAME@REVISION:FILE``."""

    repository: str
    revision: str | None = None  # a branch, a tag or a commit; None for the main branch
    file: str | None = None  # path in the repository; None for its file of weights


def read_address(address: str) -> HubAddress:
    """Split an address into its parts.

    Raises:
        CheckpointError: if it has another form.
    """
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise CheckpointError(
            f'{address}: expected hf:OWNER/NAME, hf:OWNER/NAME@REVISION or '
            'hf:OWNER/NAME@REVISION:FILE'
        )
    return HubAddress(**parts.groupdict())


def require_hub(address: str) -> ModuleType:
    """Import ``huggingface_hub``, or raise a CheckpointError that says how to install it."""
    missing = [name for name in ('huggingface_hub', 'safetensors') if find_spec(name) is None]
    if missing:
        raise CheckpointError(f'{address}: needs packages: pip install {" ".join(missing)}')
    return import_module('huggingface_hub')


def download(address: str) -> Path:
    """The file of an address in the cache of ``huggingface_hub``; downloads it if necessary.

    Raises:
        CheckpointError: if the package, the repository, the revision or the file is missing, access
            is refused, the download breaks off, or the file has a different hash.
    """
    repository, revision, file = read_address(address)
    hub = require_hub(address)
    try:
        api = hub.HfApi(library_name='ptnt_mm', library_version=__version__)
        file = file or _weights_file(api, address)
        path = Path(api.hf_hub_download(repository, file, revision=revision))
    except CheckpointError:
        raise
    except Exception as error:  # the package has three libraries below it, each with its own kinds
        raise CheckpointError(f'{address}: {why_refused(error, address, file)}') from error
    _check_hash(path, address)
    return path


def why_refused(error: Exception, address: str, file: str | None = None) -> str:
    """Explain an exception of ``huggingface_hub`` in a line.

    Args:
        error: The exception.
        address: What was requested.
        file: The file in the repository, if it was known.
    """
    kinds = import_module('huggingface_hub.errors')
    constants = import_module('huggingface_hub.constants')
    repository, revision, _ = read_address(address)
    status = getattr(getattr(error, 'response', None), 'status_code', None)
    # Subclasses come first.
    if isinstance(error, kinds.GatedRepoError):
        return (
            f'access to this repository has to be requested: open {constants.ENDPOINT}/{repository}'
            ' in a browser, and log in here with hf auth login'
        )
    if isinstance(error, kinds.RevisionNotFoundError):
        return f'{repository} has no revision {revision}'
    if isinstance(error, kinds.RepositoryNotFoundError):
        return (
            f'{constants.ENDPOINT} shows no repository {repository}: check its name or, if it is '
            'private, log in with hf auth login or set HF_TOKEN'
        )
    if isinstance(error, kinds.LocalEntryNotFoundError | kinds.OfflineModeIsEnabled):
        if constants.HF_HUB_OFFLINE:
            what = file or 'the file of weights'
            return f'{what} is not in the cache, and HF_HUB_OFFLINE is set'
        return f'{constants.ENDPOINT} cannot be reached, and the file is not in the cache'
    if isinstance(error, kinds.EntryNotFoundError):
        return f'{repository} has no file {file}'
    if status in (401, 403):
        return (
            f'{constants.ENDPOINT} refuses access ({status}): log in with hf auth login or set '
            'HF_TOKEN to a token that has access'
        )
    if status is not None:
        return f'{constants.ENDPOINT} answered with status {status}: try again later'
    lines = message_of(error).strip().splitlines() or [type(error).__name__]
    return f'the connection to {constants.ENDPOINT} failed ({printable(lines[0])}): try again'


def _weights_file(api: Any, address: str) -> str:
    """Choose the file of weights in a repository: safetensors before pickles."""
    repository, revision, _ = read_address(address)
    http_error = import_module('huggingface_hub.errors').HfHubHTTPError
    try:
        listed = api.model_info(repository, revision=revision).siblings
        names = [file.rfilename for file in listed]
    except http_error:
        raise
    except Exception:  # without a connection, the cache may have it
        cached = require_hub(address).try_to_load_from_cache
        for name in _USUAL:
            if isinstance(cached(repository, name, revision=revision), str):
                return name
        raise
    for name in _USUAL:
        if name in names:
            return name
    for suffix in _SUFFIXES:
        found = [name for name in names if name.endswith(suffix)]
        if len(found) == 1:
            return found[0]
        if found:
            raise CheckpointError(
                f'{address}: has several files of weights: {first_few(found)}. Name one, such as '
                f'hf:{repository}:{found[0]}'
            )
    raise CheckpointError(
        f'{address}: contains no weights: expected {WEIGHTS} or a file that ends in '
        f'{", ".join(_SUFFIXES)}, but found {first_few(names) or "nothing"}'
    )


def _check_hash(path: Path, address: str) -> None:
    """Compare a file with its SHA-256: large files have it as their name in the cache."""
    expected = path.resolve().name
    if _HASH.fullmatch(expected) and (found := sha256(path.resolve())) != expected:
        remove(path)
        raise CheckpointError(
            f'{address}: the downloaded file was removed, because its SHA-256 is {found[:8]}..., '
            f'expected {expected[:8]}...: try again'
        )
