"""MMEngine's checkpoint loading, made safe and strict.

Safe: after a call of :func:`make_loading_safe`, our reader loads every checkpoint for MMEngine
(``init_cfg``, ``load_from``, resume, test, inferencers) without running code in it. The config that
MMEngine stores as Python text is dropped on the way: ``Runner.resume`` and the inferencers would
execute it.

Strict: a whole model is loaded only if each weight fits. MMEngine only warns.
"""

import copy
import functools
from collections import OrderedDict
from typing import Any

from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader
from torch import nn

from ptnt_mm.weights.fit import Scope, Whole, fit, only_tensors
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import (
    check_described,
    read_checkpoint,
    reading_safely,
    refuse_forced_unsafe_loading,
)

_load_checkpoint = CheckpointLoader.load_checkpoint


class _WithoutConfig(dict):
    """Metadata of a checkpoint; accessing the config raises an error that explains its removal."""

    def __init__(self, entry: dict):
        super().__init__(item for item in entry.items() if item[0] not in ('cfg', 'config'))
        if isinstance(self.get('runtime_info'), dict):
            self['runtime_info'] = _WithoutConfig(self['runtime_info'])

    def __missing__(self, key: Any) -> Any:
        if key in ('cfg', 'config'):
            raise CheckpointError(
                'the config that a checkpoint stores is Python, which could run anything, and is '
                'never executed here. Pass a config yourself: '
                "DetInferencer(model='my_config.py', weights='my_checkpoint.pth')"
            )
        raise KeyError(key)

    def __reduce__(self) -> tuple:
        """Pickle as a plain dict, which any reader of checkpoints supports."""
        return OrderedDict, (), None, None, iter(self.items())


def without_config(checkpoint: Any) -> Any:
    """Drop the stored config text of a checkpoint; its other entries are shared, not copied.

    Raises:
        CheckpointError: as :func:`check_described`.
    """
    if not isinstance(checkpoint, dict):
        return checkpoint
    check_described(checkpoint)
    described = {'meta', 'message_hub'} & checkpoint.keys()
    clean = {name: _WithoutConfig(checkpoint[name]) for name in described}
    return {**checkpoint, **clean} if clean else checkpoint


def make_loading_safe() -> None:
    """Make MMEngine load every checkpoint in this process with our reader.

    ``import ptnt_mm`` does not call it. A config does with ``custom_imports``, see
    ``safe_loading.py``. Calling it again is harmless.
    """
    # torchvision://, open-mmlab:// and mmcls:// addresses are resolved by it; MMEngine's own uses
    # torch.hub, which runs code from its cache folder.
    mmengine_checkpoint.load_from_http = load_from_file
    CheckpointLoader.register_scheme(['', 'http://', 'https://'], load_from_file, force=True)
    CheckpointLoader.load_checkpoint = staticmethod(_load_safely)


def require_safe_loading() -> None:
    """The same, for our commands, the functions of ``ptnt_mm.api`` and `CheckpointGuardHook`.

    Raises:
        CheckpointError: if an environment variable makes torch load unsafely.
    """
    refuse_forced_unsafe_loading()
    make_loading_safe()


def load_from_file(filename: str, map_location: Any = 'cpu') -> dict:
    """Read a file or an http(s) address.

    MMEngine's log names the source of a checkpoint: it strips ``load_from_`` off this name.
    """
    return read_checkpoint(filename, map_location)


@functools.wraps(_load_checkpoint)
def _load_safely(filename: str, map_location: Any = None, logger: Any = None) -> Any:
    """Loader that MMEngine calls for every checkpoint address; without a logger it is silent."""
    try:
        with reading_safely():
            return without_config(_load_checkpoint(filename, map_location, logger or 'silent'))
    except CheckpointError as error:
        named = str(error).startswith(str(filename))
        raise CheckpointError(f'{error}' if named else f'{filename}: {error}') from error


def load_strictly(model: nn.Module, filename: str) -> dict:
    """Load every weight of a model from a file or an address, or raise and change nothing.

    Returns:
        The checkpoint's metadata without the config; empty if there is none.

    Raises:
        CheckpointError: if it cannot be read, does not fit the model, or contains NaN or infinity.
    """
    require_safe_loading()
    checkpoint = CheckpointLoader.load_checkpoint(filename, 'cpu', logger='silent')
    require_fitting(checkpoint, model, Whole(), filename)
    mmengine_checkpoint._load_checkpoint_to_model(model, checkpoint)
    return checkpoint.get('meta') or {}


def require_fitting(checkpoint: dict, model: nn.Module, scope: Scope, source: str) -> None:
    """Check that a checkpoint has each weight of a model in its shape.

    Args:
        checkpoint: Its weights get the names that the model and EMA hooks expect, in place.
            Position tables of a different pretraining size are converted if only the backbone's
            weights are needed.
        model: Without a wrapper such as DistributedDataParallel.
        scope: ``Whole()``, or ``BackboneOfWhole()`` if the other parts may differ.
        source: The checkpoint's file or address, for errors.

    Raises:
        CheckpointError: if a weight is missing, has another shape, or contains NaN or infinity.
    """
    stored, ready, _ = fit(checkpoint, model, scope, source)
    # A copy keeps the versions of modules, and state that is not a tensor.
    state = copy.copy(checkpoint.get(stored.entry, checkpoint))
    for key in only_tensors(state):
        del state[key]
    state.update(stored.weights | ready)
    checkpoint['state_dict'] = state
