"""The libraries that train and run our models, and the differences between them."""

import importlib
import io
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.utils.imports import without_garbage_collection
from ptnt_mm.workbench.config.causes import Kind, explain


@dataclass(frozen=True)
class Host:
    """A library that can be a config's ``default_scope``.

    Attributes:
        task: Task of its models.
        tta_model: The model that merges the predictions for several views of an image, if any.
        dump: The registered evaluator that writes predictions into a file.
        own_drawing: Whether our hook draws predictions in place of the library's.
        to_rgb: The setting of its image preprocessors that converts BGR to RGB.
        exports: Whether its models can be exported.
    """

    task: str
    tta_model: str | None
    dump: str
    own_drawing: bool = False
    to_rgb: str = 'bgr_to_rgb'
    exports: bool = True


HOSTS = {
    'mmdet': Host('detection', 'ptnt_mm.models.mmdet_models.InstanceTTAModel', 'DumpDetResults'),
    'mmseg': Host('segmentation', 'SegTTAModel', 'DumpMaps', own_drawing=True),
    'mmpretrain': Host(
        'classification', 'AverageClsScoreTTA', 'DumpResults', own_drawing=True, to_rgb='to_rgb'
    ),
    'mmrotate': Host('rotated detection', None, 'DumpResults', exports=False),
}
"""Hosts by the default scope of their configs, which is also their import name."""


def import_host(scope: str) -> None:
    """Import the library that a config's default scope names, or raise a UserError."""
    try:
        # OneDL's forks print about packages that our configs do not use, with print_log.
        with (
            without_garbage_collection(),
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
        ):
            warnings.filterwarnings('ignore', 'faster_coco_eval')
            importlib.import_module(scope)
            if scope in HOSTS:  # their registries would import these a moment later
                for part in ('models', 'datasets', 'evaluation'):
                    importlib.import_module(f'{scope}.{part}')
    except ModuleNotFoundError as error:
        absent = explain(error, Kind.PACKAGE)
        raise UserError(f'{scope} cannot be imported: {absent}') from error
    except (ImportError, AssertionError) as error:
        raise UserError(
            f'{scope} cannot be imported: {one_line(error)}. Run ptnt doctor'
        ) from error


def forget_copies() -> None:
    """Empty the memo with which MMEngine copies data sets, as for KFoldDataset.

    MMEngine never does. Its keys are ids, which later objects get again: their copies would be
    those of earlier objects.
    """
    from mmengine.dataset import BaseDataset

    # In OneDL's fork, the default is None.
    for memo in filter(None, BaseDataset._copy_without_annotation.__defaults__ or ()):
        memo.clear()
