"""Former paths of modules, which configs and scripts of earlier versions name."""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

FORMER = {
    'ptnt_mm.checkpoints': 'ptnt_mm.weights.reader',
    'ptnt_mm.checkpoints.read': 'ptnt_mm.weights.reader.read',
    'ptnt_mm.engine.config': 'ptnt_mm.config.read',
    'ptnt_mm.engine.dump_maps': 'ptnt_mm.engine.evaluation_outputs',
    'ptnt_mm.engine.hooks.draw_predictions': 'ptnt_mm.engine.hooks.drawing',
    'ptnt_mm.engine.hooks.draw_validation': 'ptnt_mm.engine.hooks.drawing',
    'ptnt_mm.engine.hooks.repeatable': 'ptnt_mm.engine.repeat',
    'ptnt_mm.engine.train_loop': 'ptnt_mm.engine.repeat',
    'ptnt_mm.engine.strict_loading': 'ptnt_mm.weights.mmengine',
    'ptnt_mm.engine.optimizer': 'ptnt_mm.models.optimizer',
    'ptnt_mm.models.instance_tta': 'ptnt_mm.models.mmdet_models',
    'ptnt_mm.models.peg_detr': 'ptnt_mm.models.mmdet_models',
    'ptnt_mm.models.simple_feature_pyramid': 'ptnt_mm.models.necks',
    'ptnt_mm.models.upsampling_necks': 'ptnt_mm.models.necks',
    'ptnt_mm.models.weights': 'ptnt_mm.weights',
    'ptnt_mm.models.weights.pretrained': 'ptnt_mm.weights.pretrained',
    'ptnt_mm.zoo': 'ptnt_mm.config.zoo',
}
"""Where the content of each module is now."""


class FormerPaths(MetaPathFinder, Loader):
    """Finds a module by its former path: a module with the names of the present one."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """The module, if this is a former path; a package may have further ones in it."""
        return ModuleSpec(name, self, is_package=True) if name in FORMER else None

    def exec_module(self, module: ModuleType) -> None:
        """Copy the names."""
        present = vars(import_module(FORMER[module.__name__]))
        vars(module).update({name: present[name] for name in present if not name.startswith('__')})


def add_finder() -> None:
    """Find former paths from here on, once all present ones were tried."""
    if not any(isinstance(finder, FormerPaths) for finder in sys.meta_path):
        sys.meta_path.append(FormerPaths())
