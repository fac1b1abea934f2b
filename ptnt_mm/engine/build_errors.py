"""Explain why MMEngine could not build what a config names."""

import re
import traceback

from mmengine.registry import build_from_cfg

from ptnt_mm.engine.constructors import arguments, registered_names
from ptnt_mm.utils.text import unknown_name

_NOT_REGISTERED = re.compile(r'(\w+) is not in the (\S+) registry')
_REFUSED = re.compile(r"unexpected keyword argument '(\w+)'")


def is_about_the_config(error: Exception) -> bool:
    """Whether an error means that a name in a config is not registered."""
    return bool(_REFUSED.search(str(error)) or _NOT_REGISTERED.search(str(error)))


def explain_build_error(error: Exception) -> str:
    """Explain in one line what a constructor refused; suggest the nearest argument or class."""
    refused, absent = _REFUSED.search(str(error)), _NOT_REGISTERED.search(str(error))
    cls = _class_being_built(error)
    if refused and cls is not None:
        return f'{cls.__name__}: {unknown_name("argument", refused[1], arguments(cls).parameters)}'
    if absent:
        return unknown_name('type', absent[1], sorted(registered_names(absent[2])))
    return str(error) or type(error).__name__


def _class_being_built(error: Exception) -> type | None:
    """The class whose constructor MMEngine's registry called, from the traceback."""
    cls = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is build_from_cfg.__code__:
            cls = frame.f_locals.get('obj_cls')
    return cls if isinstance(cls, type) else None
