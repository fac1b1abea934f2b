"""The models that are exported from pixels to results; for all others, only backbone and neck are.

A model is supported if the methods that `end_to_end.py` replaces are those of the hosts.
"""

from pathlib import Path

from torch import nn

from ptnt_mm.deploy.export_info import ExportInfo
from ptnt_mm.deploy.resizing import LINEAR
from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.errors import UserError
from ptnt_mm.version import __version__
from ptnt_mm.weights.reader.read import local_file
from ptnt_mm.workbench.config.hosts import HOSTS
from ptnt_mm.workbench.config.settings import short_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.load_in_range import stated_range
from ptnt_mm.workbench.engine.tiled_loops import stated_tiling
from ptnt_mm.workbench.export.dense_heads import BoxCoding, coding_of
from ptnt_mm.workbench.export.dynamic_masks import CondInstDetector, RTMDetInsDetector
from ptnt_mm.workbench.export.end_to_end import (
    DenseDetector,
    EndToEndClassifier,
    EndToEndModel,
    EndToEndSegmenter,
    TwoStageDetector,
    each_stage,
)
from ptnt_mm.workbench.export.evaluation import check_loading, stated_resizing
from ptnt_mm.workbench.inference.load import load_model


def build_network(model: nn.Module) -> EndToEndModel:
    """The exported part of a model of a host; at least backbone and neck."""
    kind = type(model).__name__
    head = getattr(model, 'bbox_head', None)
    if (
        kind == 'EncoderDecoder'
        and _is_of('BaseDecodeHead.predict', model.decode_head)
        and model.test_cfg.get('mode', 'whole') == 'whole'
    ):
        chosen = EndToEndSegmenter
    elif (
        kind == 'ImageClassifier'
        and model.head is not None
        and _is_of('ClsHead.predict', model.head)
        and _is_of('ClsHead._get_predictions', model.head)
    ):
        chosen = EndToEndClassifier
    elif (
        kind in ('RetinaNet', 'RTMDet', 'GFL', 'ATSS', 'FCOS', 'TOOD')
        and _is_of('BaseDenseHead.predict_by_feat', head)
        and _is_plain_dense(head)
        and _plain(model.test_cfg)
    ):
        chosen = DenseDetector
    elif (
        kind == 'RTMDet'
        and _is_of('RTMDetInsHead.predict_by_feat', head)
        and _is_of('RTMDetInsHead._mask_predict_by_feat_single', head)
        and _is_plain_dense(head)
        and _plain(model.test_cfg)
    ):
        chosen = RTMDetInsDetector
    elif (
        kind == 'CondInst'
        and _is_of('CondInstBboxHead.predict_by_feat', head)
        and _is_of('CondInstMaskHead.forward_single', model.mask_head)
        and _is_of('CondInstMaskHead.predict_by_feat', model.mask_head)
        and _is_plain_dense(head)
        and _plain(model.test_cfg)
    ):
        chosen = CondInstDetector
    elif (
        kind in ('FasterRCNN', 'MaskRCNN', 'CascadeRCNN')
        and _is_of('BaseDenseHead.predict_by_feat', model.rpn_head)
        and _has_plain_regions(model.roi_head)
        and _plain(model.test_cfg.rcnn)
    ):
        chosen = TwoStageDetector
    else:
        chosen = EndToEndModel
    model.eval()
    return chosen(model)


def _is_plain_dense(head: nn.Module) -> bool:
    """Whether boxes are computed as in :class:`DenseDetector`, from operators of every runtime."""
    coding = coding_of(head)
    return (
        coding is not None
        and head.use_sigmoid_cls
        and (coding is not BoxCoding or _is_of('TOODHead.forward', head))
        and not any('DeformConv' in type(module).__name__ for module in head.modules())
    )


def _has_plain_regions(roi: nn.Module) -> bool:
    """Whether boxes and masks are computed as in :class:`TwoStageDetector`."""
    kind = 'CascadeRoIHead' if isinstance(roi.bbox_head, nn.ModuleList) else 'StandardRoIHead'
    extractors = each_stage(roi.bbox_roi_extractor)
    if roi.with_mask:
        extractors += each_stage(roi.mask_roi_extractor)
    return (
        all(_is_of(f'{kind}.{step}', roi) for step in ('predict_bbox', 'predict_mask'))
        and _is_of(f'{kind}._bbox_forward', roi)
        and _is_of('ConvFCBBoxHead.forward', *each_stage(roi.bbox_head))
        and _is_of('SingleRoIExtractor.forward', *extractors)
        and (not roi.with_mask or _is_of('FCNMaskHead.forward', *each_stage(roi.mask_head)))
    )


def _is_of(method: str, *modules: nn.Module) -> bool:
    """Whether modules inherit a method of the hosts, 'Class.method', or override it."""
    name = method.partition('.')[2]
    return all(getattr(type(module), name).__qualname__ == method for module in modules)


def _plain(test_cfg: dict) -> bool:
    """Whether suppression is supported by every runtime, without soft scores."""
    is_nms = short_name(dict(test_cfg.nms)) in ('', 'nms')
    return is_nms and not test_cfg.nms.get('class_agnostic')


def check_config(view: ConfigView) -> None:
    """Raise a UserError if a config is not of a host whose models can be exported."""
    if view.host is None or not view.host.exports:
        expected = ' or '.join(scope for scope, host in HOSTS.items() if host.exports)
        raise UserError(f'{view.name} has default_scope={view.scope!r}: expected {expected}')


def load_end_to_end(
    view: ConfigView, checkpoint: Path | str, size: tuple[int, int] | None
) -> tuple[EndToEndModel, ExportInfo]:
    """The network of a config with its weights, and the metadata of its file.

    Args:
        view: A config that :func:`check_config` accepts.
        checkpoint: A training checkpoint.
        size: Height and width of the input in pixels; None for any.

    Raises:
        UserError: if the test pipeline is not supported, the model cannot be built, or the
            checkpoint does not fit it.
    """
    check_loading(view)
    resizing = stated_resizing(view)
    value_range, tiling = stated_range(view.test), stated_tiling(view)
    model, dataset_meta = load_model(view, str(checkpoint))
    classes = dataset_meta['classes']
    network = build_network(model)
    if network.task == 'features':
        kind = type(model).__name__
        print(f'{kind} is exported only as backbone and neck: docs/deploy.md lists complete models')
    about = ExportInfo(
        task=network.task,
        classes=None if classes is None else list(classes),
        size=None if size is None else list(size),
        scale=resizing.scale,
        keep_ratio=resizing.keep_ratio,
        thresholds=network.thresholds,
        config=Path(view.config.filename or 'config').name,
        checkpoint=local_file(checkpoint).name,
        checkpoint_sha256=sha256(local_file(checkpoint)),
        version=__version__,
        value_range=None if value_range is None else list(value_range),
        mask_grid=None if network.mask_grid is None else list(network.mask_grid),
        tiling=None if tiling is None else [tiling.tile, tiling.overlap],
        edge=resizing.edge,
        crop=resizing.crop,
        interpolation=None if resizing.interpolation == LINEAR else resizing.interpolation,
    )
    return network, about
