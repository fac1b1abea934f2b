"""pycocotools' evaluation of detections, for any number of them in an image."""

from pycocotools.cocoeval import COCOeval


class FullCocoEval(COCOeval):
    """COCO's evaluation whose AP counts as many detections as its other scores.

    For AP, pycocotools counts 100 detections of each class in an image, whatever ``params.maxDets``
    says.
    """

    def summarize(self) -> None:
        """Compute the twelve ``stats``, the first one with the last of ``params.maxDets``."""
        super().summarize()
        precision = self.eval['precision'][..., 0, -1]
        known = precision[precision > -1]
        self.stats[0] = known.mean() if known.size else -1
