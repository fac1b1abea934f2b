"""The backbones of `ptnt new` by name; needs no torch, so that a wrong name is refused at once."""

import ast
from pathlib import Path
from typing import Any

from mmengine.config import Config

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.weights.published import INSTALLED, default_cfg, is_installed, require_weights
from ptnt_mm.workbench.config.literals import literal
from ptnt_mm.workbench.config.zoo import SUFFIXES, config_names, config_root

PUBLISHED = 'published'
"""The weights of a backbone in the table."""

NO_WEIGHTS = 'none'
"""Random initialisation."""

_IMAGENET = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])


def rows() -> dict[str, dict[str, Any]]:
    """The backbones by name."""
    return {name: default_cfg(name) | row for name, row in _table()['backbones'].items()}


def _table() -> dict[str, Any]:
    return Config.fromfile(config_root() / '_base_' / 'project' / 'backbones.py').to_dict()


def starts() -> list[str]:
    """The backbones to start from if none is asked for, the first choice first."""
    return _table()['starts']


def pretrained() -> dict[str, list[str]]:
    """The backbones that have published weights, with top-1 on ImageNet, by where these are."""
    found = {'installed': [], 'not installed': [], 'by download': []}
    for name, row in rows().items():
        if weights := row.get('weights'):
            installed = 'installed' if is_installed(weights) else 'not installed'
            score = f' {row["top_1"]}' if row.get('top_1') else ''
            found[installed if weights in INSTALLED else 'by download'].append(f'{name}{score}')
    return {source: names for source, names in found.items() if names}


def row_of(name: str, argument: str = 'backbone') -> dict[str, Any]:
    """The row of a backbone, or one made from a registered class and its arguments.

    Raises:
        UserError: if there is no backbone of this name, which an argument has; suggests the
            nearest. If its row is not complete.
    """
    known = rows()
    if name in known:
        if missing := [key for key in ('settings', 'mean', 'std') if key not in known[name]]:
            raise UserError(
                f'the row of {name} in configs/_base_/project/backbones.py has no '
                f'{" and no ".join(missing)}: a row needs settings, and the mean and std of images '
                'in red, green and blue'
            )
        return known[name]
    try:
        call = ast.parse(name, mode='eval').body
        arguments = call.keywords if isinstance(call, ast.Call) else []
        kind = ast.unparse(call.func if isinstance(call, ast.Call) else call)
        settings = {keyword.arg: literal(keyword.value) for keyword in arguments}
    except (SyntaxError, ValueError, TypeError):
        kind = name
    if kind.rpartition('.')[2][:1].islower():
        unknown = unknown_name('backbone', name, known)
        call = "PyramidTNT(arch='tiny')"
        raise UserError(f'`{argument}`: {unknown} (or a class with its arguments, such as {call})')
    return dict(_IMAGENET, settings=dict(type=kind, **settings))


def is_run(teacher: str, weights: Path | str | None) -> bool:
    """Whether a teacher of ``ptnt pretrain`` is a config or a project, and not a backbone.

    Args:
        teacher: Its name or path.
        weights: Its file; None for its own.

    Raises:
        UserError: if there is no such network, or the weights are none.
    """
    if weights is not None:
        if str(weights) in (NO_WEIGHTS, PUBLISHED):
            raise UserError(
                f'`teacher_weights={weights}`: expected a file, an address or a name of ptnt '
                'weights; without it, the teacher has its published weights'
            )
        require_weights(str(weights))
    if teacher in rows() or not (Path(teacher).exists() or teacher in config_names()):
        row_of(teacher, 'teacher')
        return False
    if Path(teacher).is_file() and Path(teacher).suffix not in SUFFIXES:
        raise UserError(
            f'`teacher={teacher}` is a file of weights: pass it as `teacher_weights`, and its '
            'network as `teacher`: a backbone, a config or a project'
        )
    return True
