"""Detect, segment or classify on images, a video or a webcam, for ``ptnt infer``."""

import sys
from collections.abc import Iterator
from math import floor
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.deploy.decoding import type_and_shape, unread_pictures
from ptnt_mm.utils.console import fitted
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.progress import waiting
from ptnt_mm.utils.tables import to_lines
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.weights.reader.files import require_checkpoint
from ptnt_mm.workbench.data.image_files import Images
from ptnt_mm.workbench.data.predictions import FORMAT
from ptnt_mm.workbench.data.tiles import OVERLAP, Tiling
from ptnt_mm.workbench.inference.label_files import LabelFiles
from ptnt_mm.workbench.inference.load import load_exported, load_predictor
from ptnt_mm.workbench.inference.options import check_options, default_out
from ptnt_mm.workbench.inference.predictor import Predictor
from ptnt_mm.workbench.inference.source import (
    Results,
    find_source,
    process_images,
    process_video,
)
from ptnt_mm.workbench.inference.tracking import FRAME_RATE, Tracker, in_frame_order
from ptnt_mm.workbench.inference.video import Window

_NO_NAMES = (
    'NO CLASS NAMES: neither the checkpoint nor the config has a name for each class of the model; '
    'they are called "class 0", "class 1" and so on'
)

_NOUNS = dict(detections='object', classes='class')


def infer(
    config: Config | None,
    checkpoint: Path | str,
    source: Path | str,
    out: Path | str | None = None,
    *,
    overwrite: bool = False,
    score_thr: float | None = None,
    draw: bool = True,
    labels: str | None = None,
    tile: int | None = None,
    overlap: float | None = None,
    track: bool = False,
    show: bool = False,
    device: str | None = None,
    config_name: str | None = None,
) -> Path:
    """Run inference on a source as ``ptnt infer`` does, and write the results.

    Args:
        config: A complete config; None for an exported file.
        checkpoint: A training checkpoint, or an exported file.
        source: An image, a folder, a video, or the number of a webcam.
        config_name: Name of the config in the JSON file; its path by default.
        out: Output folder: by default PROJECT/infer/INPUT or work_dirs/infer/INPUT.
        overwrite: If True, replace the results of an earlier run.
        score_thr: Lowest score of predictions in pictures and JSON: by default 0.3 for detectors, 0
            for classifiers; segmenters have no scores and refuse it.
        draw: If False, write no pictures.
        labels: Also write what a detector finds as label files, to correct them in CVAT, Label
            Studio or LabelMe: 'coco', 'labelme', 'voc' or 'yolo'.
        tile: Cut larger images into tiles of this side and merge their objects; for detectors. By
            default as in evaluations with the config; 0 for whole images.
        overlap: Share of a tile that overlaps the next one: 0.2 by default.
        track: If True, give each object one number through a video or a folder of frames; needs the
            package trackers.
        show: If True, show a video or a webcam in a window; q ends it.
        device: Cpu, cuda or cuda:1; by default the best available.

    Returns:
        The JSON file; drawn pictures are in the folder next to it.

    Raises:
        UserError: for everything that the user can fix, at the end if an image failed.
    """
    if not isinstance(source, (str, Path, int)):
        raise UserError(
            f'expected a file, a folder or the number of a webcam as source, got '
            f'{type_and_shape(source)}: ptnt_mm.api.load_predictor(...).predict takes '
            'arrays'
        )
    checkpoint, source = str(checkpoint), str(source)
    if score_thr is not None and not 0 <= score_thr <= 1:
        raise UserError(f'`score_thr={score_thr}`: expected a value from 0 to 1')
    if config is not None:
        require_checkpoint(checkpoint)
    out = default_out(source) if out is None else Path(out)
    check_options(
        source,
        out,
        overwrite=overwrite,
        labels=labels,
        tile=tile,
        overlap=overlap,
        track=track,
        show=show,
    )
    results = Results(out)
    label_files = LabelFiles(labels, out) if labels is not None else None
    images = find_source(source, results.drawn)
    if track and isinstance(images, Images):
        images = in_frame_order(images)
    if label_files is not None:
        label_files.require_different_names(images)
    window = Window(images.name) if show else None
    with waiting('Loading the model'):
        if config is None:
            predictor = load_exported(Path(checkpoint), score_thr)
        else:
            predictor = load_predictor(config, checkpoint, device, score_thr)
    if label_files is not None and not predictor.finds_objects:
        raise UserError(f'`labels={labels}` is for detectors: this model finds no boxes')
    if tile is not None:
        predictor.tile(Tiling(tile, OVERLAP if overlap is None else overlap) if tile else None)
    if track:
        predictor.track(FRAME_RATE if isinstance(images, Images) else images.fps)
    if predictor.classes is None:
        print(_NO_NAMES, file=sys.stderr)
    if isinstance(images, Images) and images.skipped:
        print(f'Skipped, not images: {first_few(map(str, images.skipped))}', file=sys.stderr)
        for line in unread_pictures(images.skipped):
            print(line, file=sys.stderr)
    results.prepare()
    finished = False
    try:
        if isinstance(images, Images):
            process_images(images, predictor, results, draw)
        else:
            process_video(images, predictor, results, draw, window)
        finished = True
    finally:
        # Keep the results, whatever stops the run, such as Ctrl-C.
        results.write(
            format=FORMAT,
            finished=finished,
            config=config_name or (config and config.filename),
            checkpoint=checkpoint,
            score_thr=predictor.score_thr,
            classes=predictor.classes,
        )
        tracker = predictor.tracker if track else None
        print(fitted(closing_lines(results, predictor, tracker), sys.stdout))
    if label_files is not None:
        print(label_files.write(results.found, predictor.classes, images.root))
    if results.failed:
        failed, found = len(results.failed), len(results.found)
        raise UserError(f'{failed} of {failed + found} images failed')
    return results.file


def closing_lines(results: Results, predictor: Predictor, tracker: Tracker | None) -> str:
    """A summary with the paths of the results, and with what was found."""
    images = counted(len(results.found), results.unit)
    if predictor.tiling is not None:
        images += f', those larger than {predictor.tiling.tile} pixels in tiles'
    paths = dict(predictions=results.file)
    if results.drawn.exists():
        paths['drawn'] = results.drawn
    found = _found(results, predictor, tracker)
    return '\n'.join((f'Processed {images}', to_lines(paths), *found))


def _found(results: Results, predictor: Predictor, tracker: Tracker | None) -> Iterator[str]:
    """How many objects there are; without any, how close the best score came to the limit.

    For a segmenter, the mean share of each class.
    """
    if results.shares:
        images, shares = len(results.found), results.shares.most_common()
        found = first_few(f'{share / images:.1%} {name}' for name, share in shares)
        yield f'Pixels, on average: {found}'
    for kind, counts in results.counts.items():
        noun = _NOUNS[kind]
        without, images = counts.count(0), counted(len(counts), results.unit)
        where = f'{without} of {images}' if len(counts) > 1 else f'the {results.unit}'
        ranked = results.by_class.most_common()
        by_class = first_few(f'{number:,} {name}' for name, number in ranked)
        if kind == 'classes' and by_class:
            yield f'Best class of each {results.unit}: {by_class}'
        if kind == 'detections' and any(counts):
            with_any = len(counts) - without
            tracks = f': {counted(tracker.count, "track")}' if tracker else ''
            yield f'Found {counted(sum(counts), noun)} in {with_any} of {images}{tracks}'
            yield f'  {by_class}'
        elif without and predictor.highest_below is None:
            yield f'Found no {noun} in {where} at any score'
        elif without:
            # Rounded down: it must not seem to reach the limit.
            highest = floor(1000 * predictor.highest_below) / 1000
            yield (
                f'Found no {noun} in {where}: the highest score there is {highest}, '
                f'below {predictor.limit}'
            )
