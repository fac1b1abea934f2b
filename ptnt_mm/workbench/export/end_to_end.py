"""One module for each kind of model, from uint8 images to boxes, class maps or probabilities.

Every network takes ``images``, (B, H, W, 3) uint8, RGB, and ``sizes``, (B, 2) int64: the height
and width of the image in each; the rest is padding. They compute the same as the hosts, and
have no additional weights.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.tokens import pad, reduced
from ptnt_mm.workbench.export.dense_heads import candidates, coding_of
from ptnt_mm.workbench.export.selection import ABSENT, clip, pick, region_features, suppress

INPUTS = ('images', 'sizes')


class EndToEndModel(nn.Module):
    """A model of a host, in evaluation mode, with its preprocessing."""

    task = 'features'  # how ``ptnt_mm.deploy`` interprets the outputs
    # Thresholds for 'score', 'overlap' and 'mask', and the number of 'boxes', if there are any.
    thresholds: dict[str, float] = {}
    # For masks of the whole image: see ``ExportInfo``.
    mask_grid: tuple[float, float] | None = None

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        preprocessor = model.data_preprocessor
        for name, default in (('mean', 0.0), ('std', 1.0)):
            value = getattr(preprocessor, name, torch.full((3, 1, 1), default))
            self.register_buffer(name, value.clone())
        # The hosts have different names for this attribute.
        convert = ('_channel_conversion', 'channel_conversion', 'to_rgb')
        self.takes_bgr = not any(getattr(preprocessor, name, False) for name in convert)
        if hasattr(preprocessor, 'test_cfg'):  # mmseg's, which pads images to evaluate by it alone
            self.divisor = (preprocessor.test_cfg or {}).get('size_divisor') or 1
        else:
            self.divisor = getattr(preprocessor, 'pad_size_divisor', 1)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of :meth:`forward`'s outputs; the first access runs the network once."""
        images = torch.zeros(1, 64, 64, 3, dtype=torch.uint8, device=self.mean.device)
        with torch.no_grad():
            levels = self(images, torch.full((1, 2), 64, device=self.mean.device))
        return tuple(f'level{i}' for i in range(len(levels)))

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        """Images and sizes -> maps (B, C_i, h_i, w_i) of backbone and neck."""
        return tuple(self.model.extract_feat(self.normalised(images, sizes)))

    def normalised(self, images: Tensor, sizes: Tensor) -> Tensor:
        """(B, H, W, 3) uint8 -> (B, 3, H', W'), with zeros outside the image."""
        # Convolutions pass the order of channels in memory on, but not in every step of the export.
        image = images.permute(0, 3, 1, 2).float().contiguous()
        image = ((image.flip(1) if self.takes_bgr else image) - self.mean) / self.std
        height, width = image.shape[2:]
        rows = torch.arange(height, device=image.device) < sizes[:, :1]
        columns = torch.arange(width, device=image.device) < sizes[:, 1:]
        image = image * (rows[:, None, :, None] & columns[:, None, None, :])
        h, w = reduced((height, width), self.divisor)
        return pad(image, (h * self.divisor, w * self.divisor))


class EndToEndSegmenter(EndToEndModel):
    """mmseg's ``EncoderDecoder``: the class of each pixel."""

    task = 'segmentation'
    outputs = ('labels',)

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor]:
        """Images and sizes -> classes (B, H, W), uint8, or int32 for more than 256 classes."""
        image = self.normalised(images, sizes)
        head = self.model.decode_head
        logits = head(self.model.extract_feat(image))
        aligned = self.model.align_corners
        logits = F.interpolate(logits, image.shape[2:], mode='bilinear', align_corners=aligned)
        logits = logits[:, :, : images.shape[1], : images.shape[2]]
        number = logits.shape[1]
        labels = logits[:, 0].sigmoid() > head.threshold if number == 1 else logits.argmax(1)
        return (labels.to(torch.uint8 if number <= 256 else torch.int32),)


class EndToEndClassifier(EndToEndModel):
    """mmpretrain's ``ImageClassifier``: the probability of each class."""

    task = 'classification'
    outputs = ('scores',)

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor]:
        """Images and sizes -> probabilities (B, C)."""
        features = self.model.extract_feat(self.normalised(images, sizes))
        return (self.model.head(features).softmax(1),)


class EndToEndDetector(EndToEndModel):
    """Images and sizes -> boxes (B, D, 4), scores (B, D) and labels (B, D) int64, best first.

    The last box of an image is followed by zeros, and labels of -1.
    """

    task = 'detection'
    outputs = ('boxes', 'scores', 'labels')

    @staticmethod
    def _padded(boxes: Tensor, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        is_box = scores > ABSENT
        return boxes * is_box[..., None], scores.where(is_box, 0.0), labels.where(is_box, -1)


class DenseDetector(EndToEndDetector):
    """RetinaNet, GFL, ATSS and similar: every place of every level predicts boxes."""

    def __init__(self, model: nn.Module):
        super().__init__(model)
        self.thresholds = _thresholds(model.test_cfg)

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Images and sizes -> boxes (B, D, 4), scores (B, D), labels (B, D)."""
        levels = self.model.extract_feat(self.normalised(images, sizes))
        head = self.model.bbox_head
        return self.detect(coding_of(head).predict(head, levels), sizes)[:3]

    def detect(self, predictions: Sequence[Sequence[Tensor]], sizes: Tensor) -> tuple[Tensor, ...]:
        """Maps of each level -> boxes (B, D, 4), scores, labels, and indices of priors, (B, D)."""
        head, cfg = self.model.bbox_head, self.model.test_cfg
        found = candidates(head, predictions, sizes, cfg, cfg.score_thr)
        limits = ABSENT, cfg.nms.iou_threshold, cfg.max_per_img
        scores, places = suppress(found.boxes, found.scores, found.labels, *limits)
        boxes, labels, priors = (
            pick(values, places) for values in (found.boxes, found.labels, found.places)
        )
        return *self._padded(boxes, scores, labels), priors


class TwoStageDetector(EndToEndDetector):
    """Mask R-CNN and Cascade R-CNN, with or without masks: boxes from region proposals."""

    def __init__(self, model: nn.Module):
        super().__init__(model)
        roi = model.roi_head
        self.stages = _stages(roi.bbox_roi_extractor, roi.bbox_head)
        self.mask_stages = []
        self.thresholds = _thresholds(roi.test_cfg)
        if roi.with_mask:
            # Without a separate extractor, masks share that of the boxes.
            self.mask_stages = _stages(roi.mask_roi_extractor, roi.mask_head)
            self.outputs = (*EndToEndDetector.outputs, 'masks')
            self.thresholds['mask'] = roi.test_cfg.mask_thr_binary

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        """As for every detector, and masks (B, D, side, side) inside the boxes, from 0 to 1."""
        levels = self.model.extract_feat(self.normalised(images, sizes))
        proposals, likely = self.propose(levels, sizes)
        boxes, scores, labels = self.classify(levels, proposals, likely, sizes)
        found = self._padded(boxes, scores, labels)
        return (*found, self.masks(levels, found[0], found[2])) if self.mask_stages else found

    def propose(self, levels: Sequence[Tensor], sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Maps -> boxes (B, P, 4) and their scores (B, P)."""
        head, cfg = self.model.rpn_head, self.model.test_cfg.rpn
        found = candidates(head, head(levels), sizes, cfg)
        limits = ABSENT, cfg.nms.iou_threshold, cfg.max_per_img
        scores, places = suppress(found.boxes, found.scores, found.levels, *limits)
        return pick(found.boxes, places), scores

    def classify(
        self, levels: Sequence[Tensor], boxes: Tensor, likely: Tensor, sizes: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Proposals (B, P, 4) and their scores (B, P) -> boxes, scores, labels of D objects."""
        cfg = self.model.roi_head.test_cfg
        logits = []
        for extractor, head in self.stages:
            cls, deltas = head(region_features(extractor, levels, _with_image(boxes)))
            logits.append(cls)
            kinds = 1 if head.reg_class_agnostic else head.num_classes
            deltas = deltas.view(-1, kinds, 4)
            if len(logits) < len(self.stages):
                best = cls[:, :-1].argmax(1) if kinds > 1 else torch.zeros_like(cls[:, 0]).long()
                deltas = pick(deltas, best[:, None])
                boxes = clip(_decoded(head, boxes[:, :, None], deltas, sizes)[:, :, 0], sizes)
        scores = (sum(logits) / len(logits)).softmax(-1)[:, :-1]
        number = scores.shape[1]
        boxes = _decoded(head, boxes[:, :, None].expand(-1, -1, kinds, -1), deltas, sizes)
        boxes = boxes.expand(-1, -1, number, -1).flatten(1, 2)
        scores = scores.unflatten(0, likely.shape).where(likely[..., None] > ABSENT, ABSENT)
        labels = torch.arange(number, device=scores.device).expand_as(scores).flatten(1)
        limits = cfg.score_thr, cfg.nms.iou_threshold, cfg.max_per_img
        scores, places = suppress(boxes, scores.flatten(1), labels, *limits)
        return pick(boxes, places), scores, pick(labels, places)

    def masks(self, levels: Sequence[Tensor], boxes: Tensor, labels: Tensor) -> Tensor:
        """Boxes (B, D, 4) and labels (B, D) -> masks (B, D, side, side), zeros without a box."""
        rois, classes = _with_image(boxes), labels.flatten()
        # The head is as heavy as the rest of the network, so it skips the padding.
        is_box = labels >= 0
        # Its layers need at least one region, so the first place is always included.
        first = torch.arange(labels.shape[1], device=labels.device) == 0
        there = (is_box | first).flatten().nonzero()[:, 0]
        torch._check(there.shape[0] > 0)
        rois, classes = rois[there], classes[there].clamp(min=0)
        found = []
        for extractor, head in self.mask_stages:
            maps = head(region_features(extractor, levels, rois))
            maps = maps[:, :1] if head.class_agnostic else pick(maps, classes[:, None])
            found.append(maps[:, 0].sigmoid())
        mean = sum(found) / len(found)
        masks = mean.new_zeros(labels.numel(), *mean.shape[1:])
        masks = masks.index_put((there,), mean).unflatten(0, labels.shape)
        return masks * is_box[..., None, None]


def _decoded(head: nn.Module, boxes: Tensor, deltas: Tensor, sizes: Tensor) -> Tensor:
    """Boxes (B, P, k, 4) moved by deltas (B * P, k, 4) -> (B, P, k, 4)."""
    moved = head.bbox_coder.decode(boxes.reshape(-1, 4), deltas.reshape(-1, 4))
    return clip(moved.view(boxes.shape[0], -1, 4), sizes).view(boxes.shape)


def _with_image(boxes: Tensor) -> Tensor:
    """(B, N, 4) -> (B * N, 5), with the image's index first."""
    images = torch.arange(boxes.shape[0], device=boxes.device, dtype=boxes.dtype)
    images = images[:, None, None].expand(-1, boxes.shape[1], -1)
    return torch.cat([images, boxes], -1).flatten(0, 1)


def _thresholds(cfg: Any) -> dict[str, float]:
    """Defaults of missing keys in a ``test_cfg``."""
    return dict(score=cfg.score_thr, overlap=cfg.nms.iou_threshold, boxes=cfg.max_per_img)


def _stages(extractors: nn.Module, heads: nn.Module) -> list[tuple[nn.Module, nn.Module]]:
    return list(zip(each_stage(extractors), each_stage(heads), strict=True))


def each_stage(modules: nn.Module) -> list[nn.Module]:
    """A module of one stage, or those of all stages."""
    return list(modules) if isinstance(modules, nn.ModuleList) else [modules]
