"""Check the options of ``ptnt infer`` before torch is imported."""

from pathlib import Path

from ptnt_mm.utils.atomic_files import check_folder
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.imports import require_packages
from ptnt_mm.workbench.data.predictions import DRAWN, FILE, is_predictions
from ptnt_mm.workbench.data.tiles import OVERLAP, Tiling
from ptnt_mm.workbench.inference.label_files import LabelFiles
from ptnt_mm.workbench.inference.source import Source


def check_options(
    source: Source,
    out: Path,
    *,
    overwrite: bool,
    labels: str | None,
    tile: int | None,
    overlap: float | None,
    track: bool,
    show: bool,
) -> None:
    """Check the arguments of :func:`~ptnt_mm.workbench.inference.infer.infer` with these names.

    Raises:
        UserError: if they exclude each other or do not fit the source, if a package is missing, or
            if the output folder has files that may not be replaced.
    """
    if overlap is not None and not tile:
        raise UserError('`overlap` is for tiles: pass `tile` too, such as `tile=640`')
    if tile:
        Tiling(tile, OVERLAP if overlap is None else overlap)
    if out.resolve() == source.path.resolve():
        raise UserError(f'`out={out}` is the folder of the images: choose another one')
    drawn = out / DRAWN
    if not source.is_webcam and source.path.resolve().is_relative_to(drawn.resolve()):
        raise UserError(f'{source.name} is inside {drawn}, which is replaced: choose another `out`')
    if track:
        require_packages('`track=True`', 'trackers')
    if labels is not None and source.is_video:
        raise UserError(f'`labels={labels}` is for images; {source.name} is a video or a webcam')
    if show and not source.is_video:
        raise UserError('`show=True` is for a video or a webcam; drawn pictures are files')
    _check_results(out, overwrite)
    if labels is not None:
        LabelFiles(labels, out)


def _check_results(folder: Path, overwrite: bool) -> None:
    check_folder('out', folder)
    file, drawn = folder / FILE, folder / DRAWN
    if not file.exists() and not drawn.exists():
        return
    if not is_predictions(file):
        raise UserError(
            f'{folder} contains a {file.name} or {drawn.name} that is not from this tool: choose '
            'another `out`, or move them away'
        )
    if not overwrite:
        raise UserError(
            f'{folder} contains results of an earlier run: choose another `out`, or pass '
            '`overwrite=True`'
        )
