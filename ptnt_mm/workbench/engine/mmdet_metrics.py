"""Metrics that extend those of mmdet, and need it.

Configs name them by the path of this file: importing ptnt_mm alone does not need mmdet.
"""

from collections.abc import Sequence
from typing import Any

from mmdet.evaluation.metrics import CocoMetric, DumpDetResults
from mmdet.registry import METRICS

from ptnt_mm.workbench.engine.class_scores import KeepsCocoClassScores
from ptnt_mm.workbench.engine.coco_evaluation import FullCocoEval


@METRICS.register_module()
class DenseCocoMetric(KeepsCocoClassScores, CocoMetric):
    """mmdet's CocoMetric, whose scores count every detection.

    For AP, CocoMetric counts 100 detections of each class in an image, and for its other scores
    1,000: with 300 cells in an image, AP cannot exceed 0.33. Up to 100 detections, all scores are
    the same. Arguments are those of CocoMetric.
    """

    evaluation = FullCocoEval

    def compute_metrics(self, results: list) -> dict[str, float]:
        """The scores of all images, by name."""
        *fewer, last = self.proposal_nums
        most = max((len(found['scores']) for _, found in results), default=0)
        self.proposal_nums = (*fewer, max(last, most))
        return super().compute_metrics(results)


@METRICS.register_module()
class DumpTiledResults(DumpDetResults):
    """mmdet's DumpDetResults, for masks that are run lengths already: those of tiles.

    Arguments are those of DumpDetResults.
    """

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep the predictions of a batch; masks in tensors are encoded."""
        for sample in data_samples:
            found = dict(sample['pred_instances'])
            masks = found.pop('masks') if isinstance(found.get('masks'), list) else None
            super().process(data_batch, [dict(sample, pred_instances=found)])
            if masks is not None:
                self.results[-1]['pred_instances']['masks'] = masks
