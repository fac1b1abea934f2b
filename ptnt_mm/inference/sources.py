"""Open the input of the command line: an image, a folder, a video or a webcam."""

from pathlib import Path

from ptnt_mm.inference.images import Images, find_images
from ptnt_mm.inference.video import VIDEO_SUFFIXES, Video, open_video, open_webcam
from ptnt_mm.utils.errors import UserError


def default_out(text: str) -> Path:
    """Return the default output folder for an input."""
    name = f'webcam_{text}' if _is_webcam(text) else Path(text).resolve().name
    return Path('work_dirs', 'infer', name)


def find_source(text: str, drawn: Path) -> Images | Video:
    """Find the images or open the video.

    Args:
        text: A path, or the number of a webcam.
        drawn: The output folder of drawn pictures. It will be replaced, so it is not searched.

    Raises:
        UserError: if there is no such input, or it lies in ``drawn``.
    """
    path = Path(text)
    if _is_webcam(text):
        return open_webcam(int(text))
    if not path.exists():
        raise UserError(f'there is no image, folder or video {text}')
    if path.resolve().is_relative_to(drawn.resolve()):
        raise UserError(f'{text} lies in {drawn}, which is replaced: choose another --out')
    if path.is_dir():
        return find_images(path, without=drawn)
    if path.suffix.lower() in VIDEO_SUFFIXES:
        return open_video(path)
    return Images(path.parent, (Path(path.name),))


def _is_webcam(text: str) -> bool:
    return text.isdecimal() and not Path(text).exists()
