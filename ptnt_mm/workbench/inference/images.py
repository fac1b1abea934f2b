"""Predict on image files: an image, or a folder of them, which may be the frames of a video."""

import sys
from collections.abc import Iterator
from pathlib import Path

from ptnt_mm.deploy.decoding import Range, unread_pictures
from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.progress import new_bar
from ptnt_mm.utils.text import counted, first_few, natural_order, printable
from ptnt_mm.workbench.config.causes import Kind, explain
from ptnt_mm.workbench.data.image_files import Images, drawn_name, encode_image, find_images
from ptnt_mm.workbench.data.pixel_values import COMMON, few_levels, measure_values
from ptnt_mm.workbench.inference.image_loaders import LoadedImage
from ptnt_mm.workbench.inference.predictor import Predictor
from ptnt_mm.workbench.inference.results import Results, reason_of

_KEEPS_LEVELS = (
    'train a model with LoadImageInRange, as ptnt new writes it for such images, or scale them as '
    'in training'
)
_LIKE_IN_TRAINING = 'the model loads {:g} to {:g}: scale them as in training'


class ImageFiles:
    """An image, or the images below a folder.

    Args:
        path: A file, or a folder.
        drawn: The folder of drawn pictures, which will be replaced: it is not searched.

    Attributes:
        root: The folder.
        files: The images, relative to it.

    Raises:
        UserError: if a folder has no image.
    """

    frame_rate = 30.0
    """Frames per second. A folder of frames states none; this is the rate of OC-SORT's settings."""

    def __init__(self, path: Path, drawn: Path):
        if path.is_dir():
            found = find_images(path, without=drawn)
        else:
            found = Images(path.parent, (Path(path.name),))
        self.root, self.files, self._others = found.root, found.files, found.skipped

    def sort_frames(self) -> None:
        """Sort the frames of a video by the numbers in their names: 2 before 10.

        Raises:
            UserError: if it is one image, or if they are in several folders.
        """
        folders = {name.parent for name in self.files}
        if len(self.files) == 1:
            raise UserError(
                '`track=True` is for a video, a webcam or a folder of frames; got one image, '
                f'{self.files[0]}'
            )
        if len(folders) > 1:
            raise UserError(
                f'`track=True` expects the frames of one video; {self.root} has images in several '
                f'folders: {first_few(sorted(map(str, folders)))}. Pass one at a time'
            )
        by_number = sorted(self.files, key=lambda name: (natural_order(name.name), name.name))
        self.files = tuple(by_number)

    def remarks(self) -> Iterator[str]:
        """Lines about files that are not read."""
        if self._others:
            yield f'Skipped, not images: {first_few(map(str, self._others))}'
            yield from unread_pictures(self._others)

    def process(self, predictor: Predictor, results: Results, draws: bool) -> None:
        """Predict on each image; report a failed one, and continue with the others.

        Raises:
            UserError: if a picture cannot be written because the disk is full or read-only.
        """
        dim: list[str] = []
        with new_bar() as bar:
            for name in bar.track(self.files, description='Images'):
                file = self.root / name
                try:
                    loaded = predictor.load(file)
                    if few := _few_levels(file, loaded, predictor.value_range):
                        dim.append(f'{printable(str(name), 300)} ({few})')
                    entry, drawn = predictor.result(loaded, draws)
                    if drawn is not None:
                        picture = encode_image(drawn, drawn_name(name).suffix)
                        write_atomically(results.drawn / drawn_name(name), picture)
                except Exception as error:  # an image can fail in any way, such as out of memory
                    if explain(error, Kind.DISK):
                        raise
                    reason = reason_of(error, file)
                    results.fail(name.as_posix(), reason)
                    # Above the bar, whatever the file names contain.
                    line = f'FAILED {printable(str(name), 300)}: {reason}'
                    bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
                    continue
                results.add(file=name.as_posix(), **entry)
        if len(dim) > COMMON * len(self.files):
            what = counted(len(dim), 'image')
            stated = predictor.value_range
            advice = _LIKE_IN_TRAINING.format(*stated) if stated else _KEEPS_LEVELS
            print(f'FEW GREY LEVELS in {what}: {dim[0]}; {advice}', file=sys.stderr)


def _few_levels(file: Path, loaded: LoadedImage, stated: Range | None) -> str:
    """Describe the values of a file of which loading left few grey levels, else ''."""
    try:
        content = file.read_bytes()
        values = measure_values(content)
        return few_levels(content, values, loaded.pixels, stated) if values else ''
    except Exception:  # of a format that only the config's loader reads
        return ''
