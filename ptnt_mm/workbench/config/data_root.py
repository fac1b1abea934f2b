"""Read all data of a config from a different folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.utils import is_abs

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.view import SPLITS, ConfigView


def use_data_root(config: Config, folder: Path | str) -> None:
    """Replace the ``data_root`` of all data sets, also in the paths of evaluators.

    Args:
        config: Changed in place.
        folder: Contains what the old ``data_root`` contains.

    Raises:
        UserError: if the data sets have no ``data_root``, or more than one.
    """
    view = ConfigView(config)
    data_sets = (data_set for split in SPLITS for data_set in view.split(split).data_sets)
    named = (data_set.settings.get('data_root') for data_set in data_sets)
    roots = sorted({root.rstrip('/') for root in named if root})
    if len(roots) != 1:
        found = f'several, {", ".join(roots)}' if roots else 'none'
        raise UserError(
            f'`data_root={folder}` replaces the data_root of all data sets, but {view.name} has '
            f'{found}: change paths with `options`'
        )
    for key in config:
        if key.endswith(('_dataloader', '_evaluator')):
            config[key] = _moved(config[key], roots[0], str(folder).rstrip('/'))


def _moved(value: Any, old: str, new: str) -> Any:
    """A setting with the new root in place of the old one; mappings are changed in place."""
    if isinstance(value, Mapping):
        joins = value.get('data_root') and not is_abs(old)
        for key in value:
            # MMEngine and the hosts join these to the data_root beside them.
            if not (joins and (key == 'data_prefix' or key.endswith('_file'))):
                value[key] = _moved(value[key], old, new)
    elif isinstance(value, (list, tuple)):
        return type(value)(_moved(part, old, new) for part in value)
    elif isinstance(value, str) and f'{value}/'.startswith(f'{old}/'):
        return new + value[len(old) :]
    return value
