"""The report of a detector: scores, errors, confusion, and its worst images."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from sklearn.metrics import confusion_matrix

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.pages.page import outline
from ptnt_mm.workbench.pages.report.coco_scores import (
    LIMIT,
    CocoScores,
    read_annotations,
    score_results,
)
from ptnt_mm.workbench.pages.report.detection_errors import (
    FOREGROUND,
    Detection,
    ErrorSplit,
    Kind,
    Truth,
    overlaps,
    split_errors,
)
from ptnt_mm.workbench.pages.report.gallery import RankedImage
from ptnt_mm.workbench.pages.report.tables import SCORE

SHOWN_SCORE = 0.3
"""Lowest score of a shown detection, as in mmdet's pictures."""

_LOWEST_SCORE = 0.05
_MOST_DETECTIONS = 40
"""Largest number of detections on the page for an image, and their lowest score."""


@dataclass(frozen=True)
class DetectionReport:
    """Results of one run."""

    all_scores: list[CocoScores]  # of boxes, and of masks if there are any
    folders: list[Path]  # where images are
    truth: Path  # the annotation file

    metrics = 'CocoMetric', 'DenseCocoMetric'  # evaluators whose predictions are read
    output = 'outfile_prefix'  # its setting for the output
    unit = SCORE

    @classmethod
    def read(cls, view: ConfigView, evaluator: dict, folder: Path) -> Self:
        """Compare the results in a folder with the ground truth that its config names.

        Raises a UserError if either cannot be read, or there are no objects.
        """
        sets = view.test.data_sets
        names = sets[0].metainfo.get('classes', ())
        truth = evaluator.get('ann_file') or sets[0].path(sets[0].settings.get('ann_file'))
        if truth is None:
            raise UserError('the config has no local annotation file')
        limit = LIMIT if type_name(evaluator) == 'CocoMetric' else None
        scores = [
            score_results(read_annotations(Path(truth)), file, kind, names, limit)
            for kind, file in cls.prediction_files(view, evaluator, folder).items()
        ]
        prefixes = (part.prefixes.get('img') or '' for part in sets)
        roots = (part.settings.get('data_root') or '' for part in sets)
        folders = [Path(*pair) for pair in zip(roots, prefixes, strict=True)]
        return cls(scores, folders, Path(truth))

    @staticmethod
    def prediction_files(view: ConfigView, evaluator: dict, folder: Path) -> dict[str, Path]:
        """The files of results for those of 'bbox' and 'segm' that are evaluated."""
        metric = evaluator.get('metric', 'bbox')
        asked = [metric] if isinstance(metric, str) else metric
        kinds = [kind for kind in ('bbox', 'segm') if kind in asked]
        return {kind: folder / f'predictions.{kind}.json' for kind in kinds}

    @property
    def test_split(self) -> str:
        """The annotation file and its number of images."""
        images = self.scores.evaluation.params.imgIds
        return f'{self.truth}, {counted(len(images), "image")}'

    def headline(self) -> dict[str, float]:
        """The main results by their names, in [0, 1]."""
        names = dict(bbox='Box AP', segm='Mask AP')
        return {names[scores.kind]: scores.twelve['AP'] or 0 for scores in self.all_scores}

    def numbers(self) -> dict[str, dict[str, float | None]]:
        """COCO's twelve numbers in [0, 1], of boxes and of masks."""
        names = dict(bbox='boxes', segm='masks')
        return {names[scores.kind]: scores.twelve for scores in self.all_scores}

    @property
    def scores(self) -> CocoScores:
        """The scores used for everything else: of masks if it has any, otherwise of boxes."""
        return self.all_scores[-1]

    @property
    def names(self) -> list[str]:
        """The class names."""
        return list(self.scores.classes.values())

    @cached_property
    def split(self) -> ErrorSplit:
        """Every detection with its error."""
        return split_errors(self.scores.evaluation)

    @cached_property
    def confusion(self) -> tuple[list[str], np.ndarray]:
        """Names, and how often each class (row) was predicted as each (column)."""
        names = [*self.names, 'background']
        place = {key: i for i, key in enumerate(self.scores.classes)}
        pairs = [pair for image in self._images.values() for pair in self._pairs(*image)]
        rows = ([place.get(key, len(place)) for key in keys] for keys in zip(*pairs, strict=True))
        return names, confusion_matrix(*rows, labels=range(len(names)))

    def of_classes(self) -> Iterator[dict[str, object]]:
        """See :meth:`CocoScores.of_classes`."""
        return self.scores.of_classes()

    def images(self) -> Iterator[RankedImage]:
        """Every image with its cost: the scores of false detections, plus 1 for each miss."""
        for image, (found, truths) in self._images.items():
            false = [d.entry['score'] for d in found if d.kind is not Kind.CORRECT]
            missed = sum((truth.score or 0) < SHOWN_SCORE for truth in truths)
            name = self.scores.evaluation.cocoGt.imgs[image]['file_name']
            files = [folder / name for folder in self.folders]
            file = next((file for file in files if file.is_file()), files[0])
            yield RankedImage(file, name, missed + sum(s for s in false if s >= SHOWN_SCORE), image)

    def size(self, worst: RankedImage) -> dict[str, int]:
        """``width`` and ``height`` of an image in pixels, from the annotations."""
        entry = self.scores.evaluation.cocoGt.imgs[worst.key]
        return dict(width=entry['width'], height=entry['height'])

    def details(self, worst: RankedImage) -> dict[str, list[dict]]:
        """The objects and detections of an image, as the page draws them."""
        found, truths = self._images[worst.key]
        found = [item for item in found if item.entry['score'] >= _LOWEST_SCORE]
        found = sorted(found, key=_score, reverse=True)[:_MOST_DETECTIONS]
        return dict(
            truths=[dict(self._shape(o), score=o.score and round(o.score, 3)) for o in truths],
            found=[dict(self._shape(o), score=_score(o), kind=o.kind) for o in found],
        )

    @cached_property
    def _images(self) -> dict[int, tuple[list[Detection], list[Truth]]]:
        """The detections and objects of every image."""
        images = defaultdict(lambda: ([], []))
        for detection in self.split.detections:
            images[detection.entry['image_id']][0].append(detection)
        for truth in self.split.truths.values():
            images[truth.entry['image_id']][1].append(truth)
        return {image: images[image] for image in self.scores.evaluation.params.imgIds}

    def _pairs(
        self, found: Iterable[Detection], truths: Iterable[Truth]
    ) -> Iterator[tuple[int | None, int | None]]:
        """The categories of each pair of object and detection in an image; None without partner.

        In the order of scores, each detection gets the free object of any class that it overlaps
        most.
        """
        shown = sorted(found, key=_score, reverse=True)
        entries = [item.entry for item in shown if _score(item) >= SHOWN_SCORE]
        left = {i: truth.entry for i, truth in enumerate(truths)}
        ious = overlaps(self.scores.evaluation, entries, list(left.values()))
        for entry, row in zip(entries, ious, strict=True):
            if row.max(initial=0) >= FOREGROUND:
                best = int(row.argmax())
                ious[:, best] = 0
                yield left.pop(best)['category_id'], entry['category_id']
            else:
                yield None, entry['category_id']
        yield from ((truth['category_id'], None) for truth in left.values())

    def _shape(self, shown: Detection | Truth) -> dict[str, object]:
        """Class, box and, if masks are compared, the outline as an SVG path in pixels."""
        box = [round(value) for value in shown.entry['bbox']]
        shape = dict(label=self.scores.classes[shown.entry['category_id']], box=box)
        if self.scores.kind == 'segm':
            # It has the sizes of images, which polygons need.
            shape['outline'] = outline(self.scores.evaluation.cocoGt.annToMask(shown.entry))
        return shape


def _score(shown: Detection) -> float:
    return round(shown.entry['score'], 3)
