"""Checks of the arguments of backbones and necks."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ptnt_mm.models.archs import full_names, settings
from ptnt_mm.models.layers.position import POSITIONS, PositionEncoding
from ptnt_mm.utils.text import unknown_name


def read_arch(arch: str | dict, archs: Mapping[str, dict]) -> dict:
    """The settings of an arch, by its name or alias, or given as a row.

    Raises:
        ValueError: for an unknown name, or a dict whose keys differ from those of the rows.
    """
    if not isinstance(arch, Mapping):
        return settings(archs[choose('arch', arch, full_names(archs))])
    arch, keys = settings(arch), set(settings(next(iter(archs.values()))))
    if set(arch) != keys:
        missing, unknown = sorted(keys - set(arch)), sorted(set(arch) - keys)
        raise ValueError(f'an arch dict has the keys {sorted(keys)}: {missing=}, {unknown=}')
    return arch


def is_positive(value: Any) -> bool:
    """Whether this is an integer above 0."""
    return isinstance(value, int) and value > 0


def check_pretrain_img_size(size: int, multiple: int) -> int:
    """Return the size in pixels; raise a ValueError unless every stage's grid divides evenly."""
    if not is_positive(size) or size % multiple:
        raise ValueError(
            f'pretrain_img_size is {size!r}: expected a multiple of {multiple} pixels, so that it '
            'divides into the grids of the position tables'
        )
    return size


def check_heads(kind: str, dim: int, heads: int) -> None:
    """Raise a ValueError if the heads do not divide the width; ``kind`` is 'inner' or 'outer'."""
    if dim % heads:
        raise ValueError(f'arch: {kind} width {dim} does not divide into {heads} {kind} heads')


def check_out_indices(
    out_indices: Sequence[int], number: int, kind: str, such_as: str
) -> tuple[int, ...]:
    """Return the indices, counted from 0; negative ones count from the last.

    Args:
        out_indices: The value of the option.
        number: How many stages or blocks there are.
        kind: 'stages' or 'blocks'.
        such_as: An example for the message.

    Raises:
        ValueError: unless they increase and are in range.
    """
    if not isinstance(out_indices, Sequence) or isinstance(out_indices, str):
        raise ValueError(
            f'out_indices is {out_indices!r}: expected indices of {kind} such as {such_as}'
        )
    in_order = range(number)
    indices = [in_order[i] if isinstance(i, int) and -number <= i < 0 else i for i in out_indices]
    if not indices or indices != [i for i in in_order if i in indices]:
        raise ValueError(
            f'out_indices is {tuple(out_indices)}: expected increasing indices of {kind} from 0 to '
            f'{number - 1}, such as {such_as}'
        )
    return tuple(indices)


def choose(name: str, value: str, table: Mapping[str, Any]) -> Any:
    """Return the entry of a table, or raise a ValueError that suggests the nearest name."""
    if not isinstance(value, str) or value not in table:
        raise ValueError(unknown_name(name, value, table))
    return table[value]


def choose_position(
    name: str, setting: str | dict, names: Sequence[str]
) -> Callable[..., PositionEncoding]:
    """Return the class for an option; it takes a width, a grid and a number of class tokens.

    Args:
        name: Name of the option.
        setting: A key of ``POSITIONS``, or a dict with it as ``type`` and the class's options.
        names: The keys that the backbone supports.
    """
    options = dict(setting) if isinstance(setting, Mapping) else dict(type=setting)
    kind = options.pop('type', None)
    cls = choose(name, kind, {key: POSITIONS[key] for key in names})
    unknown = sorted(options.keys() - set(cls.options))
    if unknown:
        has = ', '.join(cls.options) or 'none'
        raise ValueError(f'{name} {kind!r} has no option {", ".join(unknown)}: expected {has}')
    return partial(cls, **options)
