"""Training images with their labels as a network gets them: augmented, resized and normalised."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn

from ptnt_mm.hooks.repeat import seed_cpu
from ptnt_mm.utils.colours import as_hex, ink_on, palette_of
from ptnt_mm.workbench.check.data_sets import LoadedDataset
from ptnt_mm.workbench.check.trial.setup import load_samples, undisturbed
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.rotated_boxes import around, as_array, corners_of
from ptnt_mm.workbench.pages.page import class_map, outline, photograph

_MOST_OBJECTS = 200  # of an image: more cannot be told apart, and outlines take room
_UNKNOWN = (128, 128, 128)  # the colour of objects of no known class

Palette = Sequence[Sequence[int]]


@dataclass(frozen=True)
class NetworkInput:
    """An image as the network gets it."""

    name: str  # the file
    picture: Mapping[str, object]  # see `photograph`
    objects: list[dict[str, object]]  # each with the variables of the template of outlines
    hidden: int = 0  # number of further objects, which are not drawn
    map: str = ''  # the classes of its pixels as a data URL; empty without a mask
    label: str = ''  # the classes of the whole image


def network_inputs(
    view: ConfigView,
    sets: Sequence[LoadedDataset],
    preprocessor: nn.Module,
    classes: Sequence[str],
    count: int,
) -> Iterator[NetworkInput]:
    """Take some training images, evenly spread, through the pipeline and the preprocessor.

    The random choices are the same at every call.

    Args:
        view: The config; its host is imported.
        sets: Its data sets, as far as they are read.
        preprocessor: The data preprocessor of its model.
        classes: The names of the classes.
        count: The number of images, if there are as many.

    Raises:
        Exception: if the data set, a transform or the preprocessor fails.
    """

    def choose(data_set: Any) -> list[dict]:
        places = np.linspace(0, len(data_set) - 1, min(count, len(data_set))).round()
        samples = []
        for number, place in enumerate(places.astype(int).tolist()):
            seed_cpu(number)
            samples.append(data_set[place])
        return samples

    palette = palette_of(view.train.metainfo, len(classes))
    with undisturbed(view.scope):
        _, samples = load_samples(view.train, sets, choose)
        for sample in samples:
            # A batch of one, because the images of a batch are padded to the largest.
            batch = preprocessor(pseudo_collate([sample]), True)
            image = as_picture(batch['inputs'][0], view)
            yield _described(image, batch['data_samples'][0], classes, palette)


def as_picture(image: Tensor, view: ConfigView) -> np.ndarray:
    """Undo the normalisation of an image.

    Args:
        image: (C, H, W), the input of the network.
        view: The config, which has the mean, the standard deviation and the order of colours.

    Returns:
        (H, W, 3) uint8, RGB.
    """
    settings = view.preprocessor
    pixels = image.detach().float().cpu()
    mean, std = settings.get('mean'), settings.get('std')
    if mean is not None and std is not None:
        pixels = pixels * torch.tensor(std)[:, None, None] + torch.tensor(mean)[:, None, None]
    pixels = pixels.clamp(0, 255).round().byte().permute(1, 2, 0).numpy()
    if pixels.shape[2] == 1:
        return pixels.repeat(3, axis=2)
    is_rgb = view.host is None or settings.get(view.host.to_rgb)
    return np.ascontiguousarray(pixels if is_rgb else pixels[..., ::-1])


def _described(
    image: np.ndarray, sample: Any, classes: Sequence[str], palette: Palette
) -> NetworkInput:
    """An image (H, W, 3) with the labels of its ``DataSample``."""
    objects = _objects(sample.get('gt_instances'), classes, palette)
    name = Path(str(sample.get('img_path', ''))).name
    truth = sample.get('gt_sem_seg')
    labels = sample.get('gt_label')
    return NetworkInput(
        name,
        photograph(image),
        objects[:_MOST_OBJECTS],
        len(objects[_MOST_OBJECTS:]),
        '' if truth is None else class_map(truth.data[0].cpu().numpy(), palette),
        '' if labels is None else ', '.join(_name(i, classes) for i in labels.tolist()),
    )


def _objects(instances: Any, classes: Sequence[str], palette: Palette) -> list[dict[str, object]]:
    """Objects as the template draws them, the largest first, so that small ones are on top."""
    if instances is None or 'bboxes' not in instances:
        return []
    boxes = as_array(instances.bboxes.cpu())
    boxes = (around(corners_of(boxes)) if boxes.shape[1] > 4 else boxes).round(1)
    masks = instances.get('masks')
    masks = [None] * len(boxes) if masks is None else masks.to_ndarray()
    found = []
    for (left, top, right, bottom), label, mask in zip(
        boxes.tolist(), instances.labels.tolist(), masks, strict=True
    ):
        colour = palette[label] if 0 <= label < len(classes) else _UNKNOWN
        found.append(
            dict(
                box=(left, top, round(right - left, 1), round(bottom - top, 1)),
                outline='' if mask is None else outline(mask),
                label=_name(label, classes),
                colour=as_hex(colour),
                ink=ink_on(colour),
            )
        )
    return sorted(found, key=lambda item: -item['box'][2] * item['box'][3])


def _name(label: int, classes: Sequence[str]) -> str:
    """The name of a class, or its number if a data set has labels beyond its classes."""
    return classes[label] if 0 <= label < len(classes) else str(label)
