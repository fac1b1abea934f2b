"""Import mmpretrain without its multimodal models where they cannot be imported.

They need what later versions of transformers moved or dropped, and mmdet imports them, because
mmpretrain imports them with its other models. Nothing of ptnt_mm needs them.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

TRANSFORMERS = '<4.52'
"""The versions of transformers that these models, and GLIP of mmdet, were written for."""

_PACKAGES = ('mmpretrain.models.utils', 'mmpretrain.models.multimodal')
"""Those that import transformers while ``mmpretrain.utils.dependency.WITH_MULTIMODAL`` is True."""


class _Loader(SourceFileLoader):
    """Imports a package; if that fails, again with `WITH_MULTIMODAL` off."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the package."""
        dependency = import_module('mmpretrain.utils.dependency')
        try:
            return super().exec_module(module)
        except Exception:  # as varied as the versions of transformers
            if not dependency.WITH_MULTIMODAL:
                raise
        dependency.WITH_MULTIMODAL = False
        models = import_module('mmpretrain.registry').MODELS.module_dict
        for name, model in list(models.items()):
            if model.__module__.startswith(module.__name__):
                del models[name]  # mmpretrain now registers a placeholder
        super().exec_module(module)


class _Finder:
    """Finds only `_PACKAGES`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a package of mmpretrain where it is, and load it with our loader."""
        spec = PathFinder.find_spec(name, path) if name in _PACKAGES else None
        if spec:
            spec.loader = _Loader(name, spec.origin)
        return spec


def add_finder() -> None:
    """Leave the multimodal models out of this process if they cannot be imported.

    Costs nothing until mmpretrain's models are imported, and changes nothing if all can be.
    """
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
