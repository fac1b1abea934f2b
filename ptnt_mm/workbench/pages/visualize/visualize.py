"""The page of ``ptnt visualize``: predictions, feature maps and attention for images."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mmengine.config import Config

from ptnt_mm.deploy.decoding import type_and_shape
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.imports import require_packages
from ptnt_mm.utils.progress import watched
from ptnt_mm.workbench.config.read import require_keys
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.image_files import read_image
from ptnt_mm.workbench.engine.load_in_range import stated_range
from ptnt_mm.workbench.pages.page import photograph, write_page
from ptnt_mm.workbench.pages.visualize.folder import GENERATOR, choose_page, name_of
from ptnt_mm.workbench.pages.visualize.network import Network, load_network
from ptnt_mm.workbench.pages.visualize.scene import ChosenPlace, Prediction, RecordedScene
from ptnt_mm.workbench.pages.visualize.sections import SECTIONS

_SIDE = 640  # side of the picture below the maps, in pixels


class Question(NamedTuple):
    """The reader's choice for each image."""

    at: tuple[float, float] | None = None  # a point in pixels
    box: int | None = None  # the number of a detection of the first network, counted from 1
    channels: Sequence[int] = ()
    blocks: Sequence[int] = ()  # counted from 1

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
        return ChosenPlace(f'box {self.box}, {box["label"]} {box["score"]:.2f}', box['box'])


def _entries(
    networks: Mapping[str, Network], images: Mapping[Path, np.ndarray], question: Question
) -> Iterator[dict[str, Any]]:
    """The images as the template shows them; a UserError if there is no such box or channel.

    Networks are by their names in headings, and load the files themselves; the pixels of images are
    (H, W, 3) uint8, BGR.
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
    for file, image in images.items():
        recordings = {
            label: network.record(file)._replace(chosen=question.blocks)
            for label, network in networks.items()
        }
        scene = RecordedScene(recordings, choices[file], question.channels)
        _check_numbers(scene)
        sections = watched(SECTIONS, len(SECTIONS), file.name)
        yield dict(
            photograph(image[..., ::-1], _SIDE),
            name=str(file),
            choice=choices[file],
            predictions=predictions[file],
            figures=[dict(section=section, rows=section.rows(scene)) for section in sections],
        )


def _check_numbers(scene: RecordedScene) -> None:
    """Raise a UserError for a block or a channel that no network has."""
    for recording in scene.recordings.values():
        number = len(recording.blocks)
        for block in recording.chosen:
            if recording.blocks and not 1 <= block <= number:
                raise UserError(f'`blocks={block}`: expected numbers from 1 to {number}')
    levels = [level for seen in scene.recordings.values() for level in seen.stages()]
    most = max((len(level.feature) for level in levels), default=0)
    for channel in scene.channels:
        if not 0 <= channel < most:
            raise UserError(f'`channels={channel}`: expected numbers from 0 to {most - 1}')


def visualize(
    networks: Sequence[tuple[Config, Path | str | None]],
    images: Sequence[Path | str],
    out: Path | str | None = None,
    *,
    at: tuple[float, float] | None = None,
    box: int | None = None,
    channels: Sequence[int] = (),
    blocks: Sequence[int] = (),
    score_thr: float | None = None,
    overwrite: bool = False,
    device: str | None = None,
) -> Path:
    """Visualise the features of networks for images as ``ptnt visualize`` does.

    Args:
        networks: One, or two to compare: each a complete config, and a checkpoint or None.
        images: Image files.
        at: Show similarity and attention for this pixel (x, y) of the image; the middle by default.
        box: Show them for a detected box, by its number from 1.
        score_thr: The lowest score of a box: 0.3 by default.
        channels: Channels to show, counted from 0; by default those that vary most.
        blocks: Blocks to show, counted from 1 in the whole backbone; by default the last of each
            stage, or the first, middle and last.
        out: Folder of the page: by default PROJECT/visualize or work_dirs/visualize/CONFIG.
        overwrite: If True, replace an earlier page.
        device: Cpu, cuda or cuda:1; by default the best available.

    Returns:
        The HTML page.

    Raises:
        UserError: for everything that the user can correct.
    """
    for image in images:
        if not isinstance(image, (str, Path)):
            raise UserError(f'expected image files, got {type_and_shape(image)}')
    require_packages('ptnt visualize', 'sklearn')
    for config, _ in networks:
        require_keys(config, ('model',))
    views = [ConfigView(config) for config, _ in networks]
    config = Path(views[0].config.filename or 'model')
    page = choose_page(config, None if out is None else Path(out), overwrite)
    _check_box(box, views[0], networks[0][1])
    question = Question(at, box, channels, blocks)
    value_range = stated_range(views[0].test)
    pixels = {file: read_image(file, value_range) for file in map(Path, images)}
    for file, image in pixels.items():
        question.check_point(file, image)
    labels = 'AB' if len(networks) > 1 else ['']
    loaded = {
        label: load_network(view, checkpoint and str(checkpoint), device, score_thr)
        for label, view, (_, checkpoint) in zip(labels, views, networks, strict=True)
    }
    entries = list(_entries(loaded, pixels, question))
    about = dict(title=f'What {name_of(config)} sees', generator=GENERATOR)
    write_page('network.html', page, **about, networks=loaded, images=entries)
    return page


def _check_box(box: int | None, view: ConfigView, checkpoint: Path | str | None) -> None:
    """Raise a UserError if the network cannot predict boxes."""
    host = view.host
    if box is not None and (host is None or 'detection' not in host.task):
        raise UserError(
            f'`box={box}`: {view.config.filename} is not a detector: choose a point with `at`'
        )
    if box is not None and checkpoint is None:
        raise UserError(f'`box={box}` needs a checkpoint: without training, no box is meaningful')
