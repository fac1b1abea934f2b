"""The page of ``ptnt visualize``: predictions, feature maps and attention for images."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ptnt_mm.drawing.page import write_page
from ptnt_mm.drawing.pictures import photograph
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.progress import watched
from ptnt_mm.visualize.network import Network
from ptnt_mm.visualize.predictions import Prediction
from ptnt_mm.visualize.scene import ChosenPlace, RecordedScene
from ptnt_mm.visualize.sections import SECTIONS

GENERATOR = 'ptnt_mm visualize'
"""Marker in each page, so that one page may replace another."""

_SIDE = 640  # side of the picture below the maps, in pixels


class Question(NamedTuple):
    """The reader's choice for each image."""

    at: tuple[float, float] | None = None  # a point in pixels
    box: int | None = None  # the number of a detection of the first network, counted from 1
    channels: Sequence[int] = ()

    def check_point(self, file: Path, image: np.ndarray) -> None:
        """Raise a UserError if the point is outside the image."""
        height, width = image.shape[:2]
        if self.at and not (0 <= self.at[0] < width and 0 <= self.at[1] < height):
            x, y = self.at
            raise UserError(
                f'`at={x:g},{y:g}`: {file} has {width} x {height} pixels, so x is below {width} '
                f'and y below {height}'
            )

    def choice(self, file: Path, image: np.ndarray, prediction: Prediction) -> ChosenPlace:
        """The point or the box, or the middle of the image; a UserError if there is no such box."""
        height, width = image.shape[:2]
        if self.at:
            x, y = self.at
            return ChosenPlace(f'the point {x:g}, {y:g}', (x, y, 0, 0))
        if self.box is None:
            return ChosenPlace(
                'the middle of the image', (width / 2, height / 2, 0, 0), given=False
            )
        number = len(prediction.boxes)
        if not 1 <= self.box <= number:
            found = prediction.note or (
                f'{file} has {number} boxes with a score of {prediction.score_thr:g} or more: '
                f'expected 1 to {number}, or a lower `score_thr`'
                if number
                else f'{file} has no box with a score of {prediction.score_thr:g} or more: try a '
                'lower `score_thr`, or choose a point with `at`'
            )
            raise UserError(f'`box={self.box}`: {found}')
        box = prediction.boxes[self.box - 1]
        return ChosenPlace(f'box {self.box}, {box.label} {box.score:.2f}', box.box)


def write_network_page(
    page: Path,
    title: str,
    networks: Mapping[str, Network],
    images: Mapping[Path, np.ndarray],
    question: Question,
) -> None:
    """Write a page with all figures of all images.

    Args:
        page: The file to write.
        title: Its title.
        networks: Networks by their names in headings; '' for the only one.
        images: Pictures by their files, (H, W, 3) uint8, BGR; networks load the files themselves.
        question: The point or box, and the channels, to show.

    Raises:
        UserError: if there is no such box or channel, or a network cannot run on an image.
    """
    # The boxes of all images first, because figures take longer.
    predictions = {
        file: {label: network.predict(file) for label, network in networks.items()}
        for file in images
    }
    choices = {
        file: question.choice(file, images[file], next(iter(of_image.values())))
        for file, of_image in predictions.items()
    }
    entries = []
    for file, image in images.items():
        recordings = {label: network.record(file) for label, network in networks.items()}
        scene = RecordedScene(recordings, choices[file], question.channels)
        _check_channels(scene)
        entries.append(
            dict(
                photograph(image[..., ::-1], _SIDE),
                name=str(file),
                choice=choices[file],
                predictions=predictions[file],
                figures=_figures(scene, file.name),
            )
        )
    write_page(
        'network.html',
        page,
        title=title,
        generator=GENERATOR,
        networks=networks,
        images=entries,
    )


def _figures(scene: RecordedScene, name: str) -> list[dict[str, Any]]:
    """Each section with its rows; sections that apply to no network are omitted."""
    sections = watched(SECTIONS, len(SECTIONS), name)
    return [dict(section=section, rows=section.rows(scene)) for section in sections]


def _check_channels(scene: RecordedScene) -> None:
    levels = [level for seen in scene.recordings.values() for level in seen.stages()]
    most = max((len(level.feature) for level in levels), default=0)
    for channel in scene.channels:
        if not 0 <= channel < most:
            raise UserError(f'`channels={channel}`: expected numbers from 0 to {most - 1}')
