"""Load a predictor: a config's model with its weights, or an exported file."""

import logging
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.device import get_device
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import init_default_scope
from torch import nn

from ptnt_mm.deploy import Deployed
from ptnt_mm.utils.colours import class_colours
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.weights.class_names import compare_class_names
from ptnt_mm.weights.mmengine import load_strictly
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.build_errors import explained_building
from ptnt_mm.workbench.config.class_names import find_classes
from ptnt_mm.workbench.config.hosts import HOSTS, import_host
from ptnt_mm.workbench.config.read import require_keys
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.tiles import Tiling
from ptnt_mm.workbench.engine.tiled_loops import stated_tiling
from ptnt_mm.workbench.inference.image_loaders import ConfigLoader, PixelLoader
from ptnt_mm.workbench.inference.predictor import Predictor

_logger = logging.getLogger(__name__)


def load_predictor(
    config: Config,
    checkpoint: str | None,
    device: str | None = None,
    score_thr: float | None = None,
) -> Predictor:
    """Build a config's model and load all of its weights.

    Args:
        config: A complete config: the model, and the test data set with its pipeline.
        checkpoint: A training checkpoint; None keeps random weights.
        device: Such as 'cpu' or 'cuda:1'; None for the best available one.
        score_thr: The lowest score of a prediction; None for the host's default.

    Returns:
        The predictor of the config's task: called with an image, it returns what was found. It cuts
        large images as a ``TiledTestLoop`` in the config does.

    Raises:
        UserError: if the config lacks its model or its test data set, the host cannot be imported
            or is not supported, the model cannot be built, the checkpoint does not fit it, it has
            no scores to compare with ``score_thr``, or the device is not available.
    """
    require_keys(config, ('model', 'test_dataloader'))
    view = ConfigView(config)
    if view.host is None:
        raise UserError(
            f'{view.name} has default_scope={view.scope!r}: expected one of {", ".join(HOSTS)}'
        )
    model, dataset_meta = load_model(view, checkpoint)
    predictor_class, _ = _predictors(view.host.task)
    with explained_building(view.name):
        predictor = predictor_class(model, dataset_meta, score_thr, ConfigLoader(view))
        if (tiling := stated_tiling(view)) is not None:
            predictor.tile(tiling)
    move(model, device or get_device())
    return predictor


def load_model(view: ConfigView, checkpoint: str | None) -> tuple[nn.Module, dict[str, Any]]:
    """Build a config's model in evaluation mode on the CPU, and load all of its weights.

    Also makes the config's host the default scope. None for the checkpoint keeps random weights.

    Returns:
        The model, and the names and colours of its classes, see ``find_classes``.

    Raises:
        UserError: if the model cannot be built, or the checkpoint does not fit it or has the
            classes of the config in another order.
    """
    model = revert_sync_batchnorm(build_model(view.config, view.name))
    model.eval()
    init_default_scope(view.scope)
    with explained_building(view.name):
        meta = load_strictly(model, checkpoint) if checkpoint else {}
        data = view.test.metainfo
        if different := compare_class_names(meta, data, model, str(checkpoint)):
            _logger.warning(different)
        return model, find_classes(meta, data, model)


def load_exported(file: Path, score_thr: float | None = None) -> Predictor:
    """Load an exported .onnx or .xml file; ``score_thr`` as in ``load_predictor``.

    Raises a UserError if it is incomplete, or returns neither boxes nor a map, or if its runtime is
    not installed.
    """
    deployed = Deployed(file)
    names, task = deployed.classes, deployed.about.task
    scope = next((scope for scope, host in HOSTS.items() if host.task == task), None)
    if scope is None:
        raise UserError(f'{file} contains only backbone and neck: it returns no boxes or classes')
    import_host(scope)
    init_default_scope(scope)
    _, exported_class = _predictors(task)
    meta = dict(classes=None, palette='random')
    if names is not None:
        meta = dict(classes=tuple(names), palette=class_colours(len(names)))
    about = deployed.about
    predictor = exported_class(deployed, meta, score_thr, PixelLoader(about.value_range))
    if about.tiling is not None:
        predictor.tile(Tiling(*about.tiling))
    return predictor


def _predictors(task: str) -> tuple[type[Predictor], type[Predictor] | None]:
    """The predictor classes of a task: for a model, and for an exported file. Imports the host."""
    match task:
        case 'detection':
            from ptnt_mm.workbench.inference.detection import Detector, ExportedDetector

            return Detector, ExportedDetector
        case 'rotated detection':
            from ptnt_mm.workbench.inference.rotated_detection import RotatedDetector

            return RotatedDetector, None  # they are not exported
        case 'segmentation':
            from ptnt_mm.workbench.inference.segmentation import ExportedSegmenter, Segmenter

            return Segmenter, ExportedSegmenter
        case 'classification':
            from ptnt_mm.workbench.inference.classification import Classifier, ExportedClassifier

            return Classifier, ExportedClassifier


def move(model: nn.Module, device: str) -> None:
    """Move a model, or raise a UserError if the device is not available."""
    try:
        model.to(device)
    except (AssertionError, RuntimeError) as error:
        raise UserError(f'device {device!r} cannot be used here: {one_line(error)}') from error
