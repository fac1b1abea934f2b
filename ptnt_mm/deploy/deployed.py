"""An exported file as a function of images."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ptnt_mm.deploy.export_info import read_export_info
from ptnt_mm.deploy.pixels import full_mask, prepared, to_rgb
from ptnt_mm.deploy.runtimes import load_runtime
from ptnt_mm.utils.errors import UserError

_OUTPUTS: dict[str, dict[str, int]] = {
    'detection': dict(boxes=3, scores=2, labels=2),
    'segmentation': dict(labels=3),
    'classification': dict(scores=2),
    'features': {},
}
"""The outputs of each task, with their numbers of dimensions (4 for masks)."""


class Detections(NamedTuple):
    """Detections of an image, the best first."""

    boxes: np.ndarray  # (n, 4) float32: x1, y1, x2, y2 in pixels of the original image
    scores: np.ndarray  # (n,) float32
    labels: np.ndarray  # (n,) int64: indices into the classes
    masks: np.ndarray | None  # (n, H, W) bool in the image's size; None for a detector of boxes


class Deployed:
    """An exported detector, segmenter or classifier.

    Resizes, crops and pads as the config's test pipeline does.

    Args:
        file: An .onnx or .xml file written by ``ptnt export``.
        runtime: 'onnxruntime' or 'openvino'; by default chosen by the suffix.
        threads: Number of threads; 0 for the runtime's default.
        precision: 'f32', or 'bf16' for OpenVINO.

    Attributes:
        about: Metadata of the file, see :class:`~ptnt_mm.deploy.export_info.ExportInfo`.

    Raises:
        UserError: if the file is incomplete, not from ``ptnt export``, or has impossible values in
            its description; if the runtime is not installed or refuses it.
    """

    def __init__(
        self, file: str | Path, runtime: str | None = None, threads: int = 0, precision: str = 'f32'
    ):
        self._file = Path(file)
        self.about = read_export_info(self._file)
        self._run = load_runtime(self._file, runtime, threads, precision)

    @property
    def classes(self) -> list[str] | None:
        """The class names, or None."""
        return self.about.classes

    def __call__(self, image: Any) -> Any:
        """Predict for an image, or for each of a list.

        Args:
            image: A path, a Pillow image, an array (H, W, 3) uint8 in RGB, or a list of those.

        Returns:
            :class:`Detections`; for a segmenter, the class of each pixel, (H, W); for a classifier,
            the probability of each class, (C,) float32; for a backbone with its neck, maps
            (1, C, h, w) by name. A list for a list.

        Raises:
            UserError: if it is not an image, is damaged, or is an array of a different type or
                shape; if the file does not have the outputs of its task.
        """
        if isinstance(image, (list, tuple)):
            return [self(item) for item in image]
        about = self.about
        image = to_rgb(image, about.value_range)
        inputs, size = prepared(image, about.resizing, about.size)
        outputs = self._run(inputs)
        self._check(outputs)
        if about.task == 'features':
            return outputs
        if about.task == 'classification':
            return outputs['scores'][0]
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
            factors = height / size[0], width / size[1]
            for i, (mask, box) in enumerate(zip(found['masks'], boxes, strict=True)):
                masks[i] = full_mask(
                    mask, box, (height, width), threshold, about.mask_grid, factors
                )
        return Detections(boxes, found['scores'], found['labels'], masks)

    def _check(self, outputs: dict[str, np.ndarray]) -> None:
        """Raise a UserError unless the outputs are those of the file's task."""
        about = self.about
        expected = dict(_OUTPUTS[about.task])
        if about.task == 'detection' and 'masks' in outputs:
            expected['masks'] = 4
            if 'mask' not in about.thresholds:
                raise UserError(f'{self._file}: thresholds lack mask. Export it again')
        for name, dimensions in expected.items():
            if name not in outputs or outputs[name].ndim != dimensions:
                got = outputs[name].shape if name in outputs else f'only {", ".join(outputs)}'
                raise UserError(
                    f'{self._file}: its task is {about.task}, which needs an output {name} with '
                    f'{dimensions} dimensions: got {got}. Export it again'
                )
