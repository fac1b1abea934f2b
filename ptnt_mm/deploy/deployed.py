"""An exported file as a function of images."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ptnt_mm.deploy.about import read_about
from ptnt_mm.deploy.pixels import paste, prepared, to_rgb
from ptnt_mm.deploy.runtimes import load


class Detections(NamedTuple):
    """What a detector finds in an image, the best first."""

    boxes: np.ndarray  # (n, 4) float32: x1, y1, x2, y2 in pixels of the image as it was given
    scores: np.ndarray  # (n,) float32
    labels: np.ndarray  # (n,) int64: indices into the classes
    masks: np.ndarray | None  # (n, H, W) bool in the image's size; None for a detector of boxes


class Deployed:
    """An exported detector or segmenter.

    Resizes and pads as the config's test pipeline does.

    Args:
        file: An .onnx or .xml file of ``ptnt export``.
        runtime: 'onnxruntime' or 'openvino'; by default the one that the suffix belongs to.
        threads: How many threads; 0 for the runtime's own choice.
        precision: 'f32', or 'bf16' for OpenVINO.

    Attributes:
        about: What the file says of itself.

    Raises:
        UserError: if the file is not whole or not ours, or the runtime is not there or refuses it.
    """

    def __init__(
        self,
        file: str | Path,
        runtime: str | None = None,
        threads: int = 0,
        precision: str = 'f32',
    ):
        self.about = read_about(Path(file))
        self._run = load(Path(file), runtime, threads, precision)

    @property
    def classes(self) -> list[str] | None:
        """Their names, or None."""
        return self.about.classes

    def __call__(self, image: Any) -> Any:
        """Look at an image, or at each of a list.

        Args:
            image: A path, a Pillow image, an array (H, W, 3) uint8 in RGB, or a list of those.

        Returns:
            :class:`Detections`; of a segmenter, the class of each pixel, (H, W); of a backbone
            with its neck, maps (1, C, h, w) by name. A list for a list.

        Raises:
            UserError: if it is not an image, is damaged, or is an array of another type or shape.
        """
        if isinstance(image, (list, tuple)):
            return [self(one) for one in image]
        image = to_rgb(image)
        about = self.about
        inputs, size = prepared(image, about.scale, about.keep_ratio, about.size)
        outputs = self._run(inputs)
        if about.task == 'features':
            return outputs
        if about.task == 'segmentation':
            labels = Image.fromarray(outputs['labels'][0, : size[0], : size[1]])
            return np.array(labels.resize(image.shape[1::-1], Image.Resampling.NEAREST))
        is_box = outputs['labels'][0] >= 0
        found = {name: values[0][is_box] for name, values in outputs.items()}
        (height, width), masks = image.shape[:2], None
        factors = np.array([width / size[1], height / size[0]] * 2, dtype=np.float32)
        boxes = found['boxes'] * factors
        if 'masks' in found:
            threshold, masks = about.thresholds['mask'], np.zeros((len(boxes), height, width), bool)
            for i, (mask, box) in enumerate(zip(found['masks'], boxes, strict=True)):
                masks[i] = paste(mask, box, (height, width), threshold)
        return Detections(boxes, found['scores'], found['labels'], masks)
