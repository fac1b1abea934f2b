"""Read safetensors files; the library's reader trusts the sizes and types in their headers."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from ptnt_mm.utils.errors import message_of
from ptnt_mm.utils.text import printable
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError, require
from ptnt_mm.weights.reader.objects import DTYPES, check_size

_MAX_HEADER = 2**24  # bytes; a tensor takes about 100
_MAX_TENSORS = 50_000


def require_package() -> None:
    """Raise a CheckpointError if the library is not installed."""
    if find_spec('safetensors') is None:
        raise CheckpointError('.safetensors files need a package: pip install safetensors')


def read_metadata(file: Path) -> dict[str, str]:
    """The texts by name in the header of a file that :func:`load_safetensors` has read."""
    from safetensors import safe_open

    with safe_open(file, framework='pt') as tensors:
        return tensors.metadata() or {}


def load_safetensors(file: Path, map_location: Any) -> dict[str, torch.Tensor]:
    """Read all tensors of a file.

    Raises:
        CheckpointError: if it is damaged, or has tensors of an unsupported size or dtype.
    """
    require_package()
    from safetensors import safe_open

    place = map_location if isinstance(map_location, (str, torch.device)) else 'cpu'
    try:
        device = torch.device(place)
        # The library knows no meta device.
        read_on = 'cpu' if device.type == 'meta' else str(device)
        with file.open('rb') as stream:
            header = int.from_bytes(stream.read(8), 'little')
        if header > _MAX_HEADER:
            raise ValueError(f'a header of {header} bytes')
        with safe_open(file, framework='pt', device=read_on) as tensors:
            names = list(tensors.keys())
            require(len(names) <= _MAX_TENSORS, f'more than {_MAX_TENSORS} tensors')
            for name in names:
                check_size(tuple(tensors.get_slice(name).get_shape()))
            weights = {name: tensors.get_tensor(name).to(device) for name in names}
    except CheckpointError:
        raise
    except Exception as error:  # its own kind, and whatever torch raises
        reason = printable(message_of(error))
        raise CheckpointError(f'is not a safetensors file, or is damaged ({reason})') from error
    strange = {weight.dtype for weight in weights.values()} - {*DTYPES.values()}
    require(not strange, f'its tensors are {", ".join(map(str, strange))}, which is not supported')
    return weights
