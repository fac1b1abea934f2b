"""The data sets of the model zoo, and the metrics that papers report on them."""

from typing import NamedTuple


class Metric(NamedTuple):
    """A figure of an evaluation: its name in papers, and its key in the host's log."""

    name: str
    key: str
    task: str
    """The task's name in MIM's metafiles."""
    whole: int = 1
    """The value that the host logs for 100 percent."""


class Benchmark(NamedTuple):
    """A data set, with the split that is evaluated and its metrics, the main one first."""

    name: str
    split: str
    metrics: tuple[Metric, ...]
    train_size: tuple[int, int]
    """Height and width of training images, in pixels."""
    counted_size: tuple[int, int]
    """Height and width, in pixels, for which tables count multiply-adds."""


BOX_METRICS = tuple(
    Metric(name, f'coco/bbox_{key}', 'Object Detection')
    for name, key in (
        ('box AP', 'mAP'),
        ('AP small', 'mAP_s'),
        ('AP medium', 'mAP_m'),
        ('AP large', 'mAP_l'),
    )
)
MASK_AP = Metric('mask AP', 'coco/segm_mAP', 'Instance Segmentation')
TOP_METRICS = (
    Metric('top-1', 'accuracy/top1', 'Image Classification', whole=100),
    Metric('top-5', 'accuracy/top5', 'Image Classification', whole=100),
)
MIOU = Metric('mIoU', 'mIoU', 'Semantic Segmentation', whole=100)

COCO = Benchmark('COCO', 'val2017', BOX_METRICS, (800, 1333), (800, 1280))
COCO_MASKS = COCO._replace(metrics=(*BOX_METRICS, MASK_AP))
ADE20K = Benchmark('ADE20K', 'validation', (MIOU,), (512, 512), (512, 512))
CITYSCAPES = Benchmark('Cityscapes', 'val', (MIOU,), (512, 1024), (512, 1024))
IMAGENET = Benchmark('ImageNet-1k', 'validation', TOP_METRICS, (256, 256), (256, 256))
"""The sizes of all variants but PyramidTNT-Ti."""
