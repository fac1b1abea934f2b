"""The report of an mmseg segmenter: IoU per class, confusion, and its worst images."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from mmengine.registry import DATASETS, DefaultScope
from mmseg.evaluation import IoUMetric
from PIL import Image
from torch.utils.data import Dataset

from ptnt_mm.deploy.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.colours import palette_of
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.progress import watched
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.config.build_errors import explained_building
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import ConfigView, unwrapped
from ptnt_mm.workbench.data.class_masks import IGNORED
from ptnt_mm.workbench.pages.page import class_map
from ptnt_mm.workbench.pages.report.gallery import RankedImage
from ptnt_mm.workbench.pages.report.tables import PERCENT


@dataclass(frozen=True)
class SegmentationReport:
    """Results of one run."""

    data_set: Dataset  # mmseg's, which loads only masks
    files: list[Path]  # the predicted maps
    ignored: int  # the index of pixels that do not count

    metrics = ('IoUMetric',)  # evaluators whose predictions are read
    output = 'output_dir'  # its setting for the output
    unit = PERCENT

    @classmethod
    def read(cls, view: ConfigView, evaluator: dict, folder: Path) -> Self:
        """Compare the maps in a folder with the ground truth that its config names.

        Raises a UserError if either cannot be read, or their sizes differ.
        """
        data_set = _data_set(view)
        files = list(_map_files(data_set, folder).values())
        report = cls(data_set, files, evaluator.get('ignore_index', IGNORED))
        # All maps are read now, so that an unreadable one is an error here and not on the page.
        _ = report.confusion
        return report

    @staticmethod
    def prediction_files(view: ConfigView, evaluator: dict, folder: Path) -> dict[str, Path]:
        """The map of each test image by its name; a UserError if two images share a name."""
        return _map_files(_data_set(view), folder)

    @property
    def names(self) -> list[str]:
        """The class names."""
        return list(self.data_set.metainfo['classes'])

    @property
    def colours(self) -> dict[str, Sequence[int]]:
        """A colour for each class, RGB in [0, 255]: the data set's if it has any."""
        palette = palette_of(self.data_set.metainfo, len(self.names))
        return dict(zip(self.names, palette, strict=True))

    @property
    def test_split(self) -> str:
        """The folder of its images, and their number."""
        folder = Path(self.data_set.get_data_info(0)['img_path']).parent
        return f'{folder}, {counted(len(self.files), "image")}'

    def headline(self) -> dict[str, float]:
        """The main result by its name, in [0, 1]."""
        return dict(mIoU=self.summary['mIoU'])

    @property
    def summary(self) -> dict[str, float]:
        """The numbers that mmseg logs, in [0, 1]."""
        metrics = _metrics(self.confusion[1])
        means = {f'm{name}': float(np.nanmean(metrics[name])) for name in ('IoU', 'Acc')}
        return dict(means, aAcc=float(metrics['aAcc']))

    def of_classes(self) -> Iterator[dict[str, object]]:
        """For each class its name, its share of the pixels, its IoU and its accuracy."""
        counts, metrics = self.confusion[1], _metrics(self.confusion[1])
        shares = counts.sum(axis=1) / max(counts.sum(), 1)
        columns = shares, metrics['IoU'], metrics['Acc']
        for name, *values in zip(self.names, *columns, strict=True):
            share, iou, accuracy = (None if np.isnan(x) else float(x) for x in values)
            yield dict(Class=name, pixels=share, IoU=iou, accuracy=accuracy)

    @cached_property
    def confusion(self) -> tuple[list[str], np.ndarray]:
        """Names, and how many pixels of each class (row) were predicted as each (column)."""
        return self.names, sum(self._counts)

    def images(self) -> Iterator[RankedImage]:
        """Every image with its cost: 1 minus its mean IoU."""
        for index, counts in enumerate(self._counts):
            file = Path(self.data_set.get_data_info(index)['img_path'])
            iou = np.nanmean(_metrics(counts)['IoU']) if counts.any() else 1
            yield RankedImage(file, file.name, float(1 - iou), index)

    def size(self, worst: RankedImage) -> dict[str, int]:
        """``width`` and ``height`` of an image in pixels, from its ground truth."""
        height, width = self._maps(worst.key)[0].shape
        return dict(width=width, height=height)

    def details(self, worst: RankedImage) -> dict[str, object]:
        """The maps of an image, its mean IoU and that of each class in it, for the page."""
        truth, found = self._maps(worst.key)
        truth, palette = np.where(truth == self.ignored, IGNORED, truth), [*self.colours.values()]
        ious = zip(self.names, _metrics(self._counts[worst.key])['IoU'].tolist(), strict=True)
        return dict(
            truth=class_map(truth, palette),
            found=class_map(found, palette),
            score=1 - worst.cost,
            classes={name: round(iou, 4) for name, iou in ious if not np.isnan(iou)},
        )

    @cached_property
    def _counts(self) -> list[np.ndarray]:
        """Counts of pixels for each image: (classes, classes), ground truth in rows."""
        counts, number = [], len(self.names)
        for index in watched(range(len(self.files)), len(self.files), 'Maps'):
            truth, found = self._maps(index)
            valid = (truth != self.ignored) & (truth < number) & (found < number)
            places = truth[valid].astype(np.int64) * number + found[valid]
            counts.append(np.bincount(places, minlength=number**2).reshape(number, number))
        return counts

    def _maps(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """The ground truth and the prediction of an image, (H, W) each."""
        file, reading = self.files[index], self.data_set.get_data_info(index)['seg_map_path']
        try:
            loaded = self.data_set[index]
            reading = file
            with Image.open(file, formats=DECODERS) as opened:
                found = np.asarray(opened)
        except Exception as error:  # decoders may raise anything
            raise UserError(f'{reading} cannot be read: {why_unreadable(error)}') from error
        truth = loaded['gt_seg_map']
        if found.shape != truth.shape:
            raise UserError(
                f'{file} has {found.shape} pixels (height, width), and its ground truth '
                f'{truth.shape}: delete it to recreate it'
            )
        # mmseg writes the same indices as in the files of the ground truth.
        return truth, found - 1 if loaded['reduce_zero_label'] else found


def _metrics(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Mmseg's ``aAcc``, ``IoU`` and ``Acc`` in [0, 1]; NaN for absent classes."""
    both, truth, found = counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)
    areas = both.copy(), truth + found - both, found, truth
    return IoUMetric.total_area_to_metrics(*map(torch.from_numpy, areas))


def _data_set(view: ConfigView) -> Dataset:
    """The test data set, which loads only masks."""
    settings = copy.deepcopy(view.test.dataset)
    for part in unwrapped(settings, view.scope):
        part.settings['pipeline'] = [s for s in part.pipeline if type_name(s) == 'LoadAnnotations']
    with explained_building('the test data set'), DefaultScope.overwrite_default_scope('mmseg'):
        return DATASETS.build(settings)


def _map_files(data_set: Dataset, folder: Path) -> dict[str, Path]:
    names = [Path(data_set.get_data_info(i)['img_path']).stem for i in range(len(data_set))]
    if len(set(names)) < len(names):
        raise UserError('test images in several folders share names, and mmseg names maps by them')
    return {name: folder / 'predictions' / f'{name}.png' for name in names}
