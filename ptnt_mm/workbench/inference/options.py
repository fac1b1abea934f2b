"""The options of ``ptnt infer``, and where its results go; needs no torch."""

from pathlib import Path

from ptnt_mm.utils.atomic_files import check_folder
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.imports import require_packages
from ptnt_mm.workbench.data.image_files import is_webcam
from ptnt_mm.workbench.data.predictions import DRAWN, FILE, is_predictions
from ptnt_mm.workbench.data.tiles import OVERLAP, Tiling
from ptnt_mm.workbench.inference.label_files import LabelFiles
from ptnt_mm.workbench.inference.video import VIDEO_SUFFIXES


def default_out(source: str) -> Path:
    """Return the default output folder for a source."""
    name = f'webcam_{source}' if is_webcam(source) else Path(source).resolve().name
    return Path('work_dirs', 'infer', name)


def is_video(source: str) -> bool:
    """Whether a source is a video or a webcam, and not an image or a folder."""
    path = Path(source)
    return is_webcam(source) or (path.suffix.lower() in VIDEO_SUFFIXES and not path.is_dir())


def check_options(
    source: str,
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
    if out.resolve() == Path(source).resolve():
        raise UserError(f'`out={out}` is the folder of the images: choose another one')
    if track:
        require_packages('`track=True`', 'trackers')
    if labels is not None and is_video(source):
        raise UserError(f'`labels={labels}` is for images; {source} is a video or a webcam')
    if show and not is_video(source):
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
