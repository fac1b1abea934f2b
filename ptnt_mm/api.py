"""The commands as functions: ``ptnt_mm.api.train`` does the same as ``ptnt train``.

A function's module is imported on first access, because a report needs other libraries than
training.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors, which show arguments
    from ptnt_mm.workbench.check.inspection import check as check
    from ptnt_mm.workbench.config.read import read_config as read_config
    from ptnt_mm.workbench.engine.test import test as test
    from ptnt_mm.workbench.engine.train import train as train
    from ptnt_mm.workbench.export.export import export as export
    from ptnt_mm.workbench.inference.infer import infer as infer
    from ptnt_mm.workbench.inference.load import load_predictor as load_predictor
    from ptnt_mm.workbench.pages.data.report_data import report_data as report_data
    from ptnt_mm.workbench.pages.report.report import report as report
    from ptnt_mm.workbench.pages.visualize.visualize import visualize as visualize
    from ptnt_mm.workbench.project.create import create_project as create_project
    from ptnt_mm.workbench.project.pretrain import pretrain as pretrain

_MODULES = {
    'check': 'ptnt_mm.workbench.check.inspection',
    'create_project': 'ptnt_mm.workbench.project.create',
    'export': 'ptnt_mm.workbench.export.export',
    'infer': 'ptnt_mm.workbench.inference.infer',
    'load_predictor': 'ptnt_mm.workbench.inference.load',
    'pretrain': 'ptnt_mm.workbench.project.pretrain',
    'read_config': 'ptnt_mm.workbench.config.read',
    'report': 'ptnt_mm.workbench.pages.report.report',
    'report_data': 'ptnt_mm.workbench.pages.data.report_data',
    'test': 'ptnt_mm.workbench.engine.test',
    'train': 'ptnt_mm.workbench.engine.train',
    'visualize': 'ptnt_mm.workbench.pages.visualize.visualize',
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
