"""Random images with annotations, for one step of a host's model."""

import torch
from mmengine.structures import PixelData
from torch import nn

OBJECTS = 7
"""Objects per random image. COCO has 7.3 on average."""


def boxes_batch(model: nn.Module, images: int, size: tuple[int, int], device: str) -> dict:
    """Return images (H, W) for a detector, with boxes, and with masks if it predicts them."""
    from mmdet.testing import demo_mm_inputs

    return demo_mm_inputs(
        images,
        [[3, *size]] * images,
        num_items=[OBJECTS] * images,
        with_mask=hasattr(model, 'roi_head') and model.roi_head.with_mask,
        device=device,
    )


def maps_batch(model: nn.Module, images: int, size: tuple[int, int], device: str) -> dict:
    """Return images (H, W) for a segmenter, with a class for each pixel."""
    from mmseg.structures import SegDataSample

    samples = [SegDataSample(metainfo=dict(img_shape=size, ori_shape=size)) for _ in range(images)]
    for sample in samples:
        labels = torch.randint(model.num_classes, (1, *size), device=device)
        sample.gt_sem_seg = PixelData(data=labels)
    inputs = torch.randint(256, (images, 3, *size), dtype=torch.uint8, device=device)
    return dict(inputs=list(inputs), data_samples=samples)


def labels_batch(model: nn.Module, images: int, size: tuple[int, int], device: str) -> dict:
    """Return images (H, W) for a classifier, with a class for each."""
    from mmpretrain.structures import DataSample

    labels = torch.randint(model.head.num_classes, (images,), device=device)
    inputs = torch.randint(256, (images, 3, *size), dtype=torch.uint8, device=device)
    return dict(inputs=inputs, data_samples=[DataSample().set_gt_label(one) for one in labels])
