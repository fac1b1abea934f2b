"""The commands as functions: ``ptnt_mm.api.train`` does the same as ``ptnt train``.

A function's module is imported on first access, because a report needs other libraries than
training.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    'check': 'ptnt_mm.check.inspection',
    'create_project': 'ptnt_mm.project.create',
    'export': 'ptnt_mm.api.exporting',
    'infer': 'ptnt_mm.api.inferring',
    'read_config': 'ptnt_mm.engine.config',
    'report': 'ptnt_mm.api.reporting',
    'test': 'ptnt_mm.api.testing',
    'train': 'ptnt_mm.api.training',
    'visualize': 'ptnt_mm.api.visualizing',
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
