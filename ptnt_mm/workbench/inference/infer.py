"""Detect, segment or classify on images, a video or a webcam, for ``ptnt infer``."""

import sys
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.deploy.decoding import type_and_shape
from ptnt_mm.utils.console import fitted
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import is_number
from ptnt_mm.utils.progress import waiting
from ptnt_mm.weights.reader.files import require_checkpoint
from ptnt_mm.workbench.data.predictions import FORMAT
from ptnt_mm.workbench.data.tiles import OVERLAP, Tiling
from ptnt_mm.workbench.inference.images import ImageFiles
from ptnt_mm.workbench.inference.label_files import LabelFiles
from ptnt_mm.workbench.inference.load import load_exported, load_predictor
from ptnt_mm.workbench.inference.options import check_options
from ptnt_mm.workbench.inference.results import Results, closing_lines
from ptnt_mm.workbench.inference.source import Source
from ptnt_mm.workbench.inference.video import Video

_NO_NAMES = (
    'NO CLASS NAMES: neither the checkpoint nor the config has a name for each class of the model; '
    'they are called "class 0", "class 1" and so on'
)


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
    checkpoint = str(checkpoint)
    if score_thr is not None and not (is_number(score_thr) and 0 <= score_thr <= 1):
        raise UserError(f'`score_thr={score_thr!r}`: expected a value from 0 to 1')
    if config is not None:
        require_checkpoint(checkpoint)
    source = Source(str(source))
    out = source.default_out if out is None else Path(out)
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
    images = Video(source, show) if source.is_video else ImageFiles(source.path, results.drawn)
    if track:
        images.sort_frames()
    label_files = None
    if labels is not None:
        label_files = LabelFiles(labels, out)
        label_files.check_names(images.files, images.root)
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
        predictor.track(images.frame_rate)
    if predictor.classes is None:
        print(_NO_NAMES, file=sys.stderr)
    for remark in images.remarks():
        print(remark, file=sys.stderr)
    results.prepare()
    finished = False
    try:
        images.process(predictor, results, draw)
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
            **predictor.notation,
        )
        print(fitted(closing_lines(results, predictor), sys.stdout))
    if label_files is not None:
        print(label_files.write(results.found, predictor.classes, images.root))
    if results.failed:
        failed, found = len(results.failed), len(results.found)
        raise UserError(f'{failed} of {failed + found} images failed')
    return results.file
