"""The models that are exported from pixels to results; for all others, only backbone and neck are.

A model is supported if the methods that :mod:`ptnt_mm.export.end_to_end` replaces are the hosts'.
"""

from torch import nn

from ptnt_mm.export.dense_heads import BoxCoding, coding_of
from ptnt_mm.export.dynamic_masks import CondInstDetector, RTMDetInsDetector
from ptnt_mm.export.end_to_end import (
    DenseDetector,
    EndToEndModel,
    EndToEndSegmenter,
    TwoStageDetector,
    each_stage,
)


def build_network(model: nn.Module) -> EndToEndModel:
    """The exported part of a model of mmdet or mmseg; at least backbone and neck."""
    kind = type(model).__name__
    head = getattr(model, 'bbox_head', None)
    if (
        kind == 'EncoderDecoder'
        and _is_of('BaseDecodeHead.predict', model.decode_head)
        and model.test_cfg.get('mode', 'whole') == 'whole'
    ):
        chosen = EndToEndSegmenter
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
    return chosen(model.eval())


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
    return test_cfg.nms.get('type', 'nms') == 'nms' and not test_cfg.nms.get('class_agnostic')
