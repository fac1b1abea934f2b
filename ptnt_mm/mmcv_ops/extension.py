"""mmcv._ext for mmcv-lite, made of torchvision's and torch's operators by ptnt_mm.

``python -m ptnt_mm mmcv-ops install`` copies this file to mmcv/_ext.py, ``remove`` deletes it. A
compiled mmcv._ext takes precedence over it. It does not import ptnt_mm itself, which takes longer
and registers classes, but only its operators.
"""

import importlib.util
import sys
from pathlib import Path

_NAME = 'ptnt_mm_mmcv_ops'


def _operators():
    """Import the table of operators under a name that does not run ptnt_mm/__init__.py."""
    found = importlib.util.find_spec('ptnt_mm')
    if found is None or found.origin is None:
        # The error of mmcv-lite itself; mmcv and mmseg catch this class.
        raise ModuleNotFoundError(
            "mmcv's operators came from ptnt_mm, which is no longer installed: "
            f'install it again, or delete {__file__} and compile mmcv',
            name=__name__,
        )
    if _NAME not in sys.modules:
        folder = Path(found.origin).with_name('mmcv_ops')
        spec = importlib.util.spec_from_file_location(
            _NAME, folder / '__init__.py', submodule_search_locations=[str(folder)]
        )
        sys.modules[_NAME] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[_NAME])
    return importlib.import_module(f'{_NAME}.operators')


globals().update(_operators().OPERATORS)
__getattr__ = _operators().left_out
