"""Run a predictor on a source: an image, a folder, a video or a webcam; write the results."""

import json
import shutil
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from ptnt_mm.deploy.decoding import Range
from ptnt_mm.utils.atomic_files import fitted_name, remove_partials, write_atomically
from ptnt_mm.utils.errors import UserError, message_of
from ptnt_mm.utils.frames import failing_line
from ptnt_mm.utils.progress import new_bar
from ptnt_mm.utils.text import counted, printable
from ptnt_mm.workbench.config.causes import Kind, explain
from ptnt_mm.workbench.data.image_files import (
    Images,
    drawn_name,
    encode_image,
    find_images,
    is_webcam,
    require_source,
)
from ptnt_mm.workbench.data.pixel_values import COMMON, few_levels, measure_values
from ptnt_mm.workbench.data.predictions import DRAWN, FILE, FORMAT
from ptnt_mm.workbench.inference.image_loaders import LoadedImage
from ptnt_mm.workbench.inference.options import is_video
from ptnt_mm.workbench.inference.predictor import Image, Predictor
from ptnt_mm.workbench.inference.video import Movie, Video, Window, open_video

_KEEPS_LEVELS = (
    'train a model with LoadImageInRange, as ptnt new writes it for such images, or scale them as '
    'in training'
)
_LIKE_IN_TRAINING = 'the model loads {:g} to {:g}: scale them as in training'


_COUNTED = {'detections', 'classes'}  # values of an image that depend on its scores


class Results:
    """Results of one run, gathered for the JSON file of its folder.

    Args:
        folder: The folder; it need not exist. The results of an earlier run in it, finished or
            killed, are replaced.

    Attributes:
        file: The JSON file.
        drawn: The folder of pictures.
        found: Results, one JSON text per image.
        failed: Failures, one JSON text per image.
        counts: The numbers of 'detections' or 'classes', one per image; empty for segmenters.
        by_class: The number of detections of each class; of images, for classifiers.
        shares: The sum over all images of each class's share of the pixels, for segmenters.
        unit: What was processed: 'image' or 'frame'.
    """

    def __init__(self, folder: Path):
        self.file, self.drawn = folder / FILE, folder / DRAWN
        # As text, which takes less memory: a webcam may run for hours.
        self.found: list[str] = []
        self.failed: list[str] = []
        self.counts: dict[str, list[int]] = defaultdict(list)
        self.by_class: Counter[str] = Counter()
        self.shares: Counter[str] = Counter()
        self.unit = 'image'

    def prepare(self) -> None:
        """Create the folder, and remove the results of an earlier run, or raise a UserError.

        The JSON file is written now, without images, to mark the folder as ours in case this
        process is killed.
        """
        folder = self.file.parent
        self.write(format=FORMAT, finished=False)
        try:
            remove_partials(folder)
            if self.drawn.exists():
                shutil.rmtree(self.drawn)
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f'{self.drawn} cannot be removed: {reason}') from error

    def add(self, **entry: Any) -> None:
        """Add an image."""
        for kind in _COUNTED & entry.keys():
            self.counts[kind].append(len(entry[kind]))
        # Of the classes of an image, the first is the best.
        labelled = (*entry.get('detections', ()), *entry.get('classes', ())[:1])
        self.by_class.update(found['label'] for found in labelled)
        self.unit = 'frame' if 'frame' in entry else 'image'
        for segment in entry.get('segments', ()):
            self.shares[segment['label']] += segment['share']
        self.found.append(json.dumps(entry))

    def fail(self, file: str, reason: str) -> None:
        """Add an image that failed."""
        self.failed.append(json.dumps(dict(file=file, reason=reason)))

    def write(self, **about: Any) -> None:
        """Write the file: facts about the whole run, then one image per line."""
        parts = [f'{json.dumps(key)}: {json.dumps(value)}' for key, value in about.items()]
        for key, entries in (('images', self.found), ('failed', self.failed)):
            lines = ',\n '.join(entries)
            parts.append(f'"{key}": [\n {lines}\n]' if entries else f'"{key}": []')
        write_atomically(self.file, '{\n' + ',\n'.join(parts) + '\n}\n')


def find_source(text: str, drawn: Path) -> Images | Video:
    """Open the images, the video or the webcam of a source argument, or raise a UserError.

    ``drawn`` is the folder of drawn pictures: it will be replaced, so it is not searched.
    """
    path = Path(text)
    require_source(text)
    if is_webcam(text):
        return open_video(int(text))
    if path.resolve().is_relative_to(drawn.resolve()):
        raise UserError(f'{text} is inside {drawn}, which is replaced: choose another `out`')
    if path.is_dir():
        return find_images(path, without=drawn)
    if is_video(text):
        return open_video(path)
    return Images(path.parent, (Path(path.name),))


def process_images(images: Images, predictor: Predictor, results: Results, draws: bool) -> None:
    """Run on image files; report a failed one, and continue with the others.

    Raises:
        UserError: if a picture cannot be written because the disk is full or read-only.
    """
    dim: list[str] = []
    with new_bar() as bar:
        for name in bar.track(images.files, description='Images'):
            file = images.root / name
            try:
                loaded = predictor.load(file)
                if few := _few_levels(file, loaded, predictor.value_range):
                    dim.append(f'{printable(str(name), 300)} ({few})')
                entry, drawn = _process(loaded, predictor, draws)
                if drawn is not None:
                    picture = encode_image(drawn, drawn_name(name).suffix)
                    write_atomically(results.drawn / drawn_name(name), picture)
            except Exception as error:  # an image can fail in any way, such as out of memory
                if explain(error, Kind.DISK):
                    raise
                reason = _reason(error, file)
                results.fail(name.as_posix(), reason)
                # Above the bar, whatever the file names contain.
                line = f'FAILED {printable(str(name), 300)}: {reason}'
                bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
                continue
            results.add(file=name.as_posix(), **entry)
    if len(dim) > COMMON * len(images.files):
        what = counted(len(dim), 'image')
        stated = predictor.value_range
        advice = _LIKE_IN_TRAINING.format(*stated) if stated else _KEEPS_LEVELS
        print(f'FEW GREY LEVELS in {what}: {dim[0]}; {advice}', file=sys.stderr)


def process_video(
    video: Video, predictor: Predictor, results: Results, draws: bool, window: Window | None
) -> None:
    """Run on the frames of a video until it ends or its window is closed.

    Raises a UserError if it is damaged, or a frame cannot be processed.
    """
    file, frames = results.drawn / fitted_name(f'{Path(video.name).stem}.mp4'), 0
    with new_bar() as bar, Movie(file, video.fps) as movie:
        for frame in bar.track(video, total=video.announced, description='Frames'):
            try:
                entry, drawn = _process(frame, predictor, draws or window is not None)
            except Exception as error:  # the other frames have the same size, and would fail too
                raise UserError(f'{video.name}, frame {frames}: {_reason(error)}') from error
            if draws:
                movie.add(drawn)
            results.add(file=Path(video.name).name, frame=frames, **entry)
            frames += 1
            if window is not None and not window.show(drawn):
                return
    video.check_end(frames)


def _process(image: Image, predictor: Predictor, draws: bool) -> tuple[dict, np.ndarray | None]:
    """Predict for a file or a frame; return JSON values and a picture."""
    loaded = predictor.load(image)
    sample = predictor.predict(loaded)
    height, width = loaded.size
    entry = dict(width=width, height=height, **predictor.describe(sample))
    return entry, predictor.draw(loaded.picture(), sample) if draws else None


def _few_levels(file: Path, loaded: LoadedImage, stated: Range | None) -> str:
    """Describe the values of a file of which loading left few grey levels, else ''."""
    try:
        content = file.read_bytes()
        values = measure_values(content)
        return few_levels(content, values, loaded.pixels, stated) if values else ''
    except Exception:  # of a format that only the config's loader reads
        return ''


def _reason(error: Exception, file: Path | None = None) -> str:
    """Explain in one line why an image failed, without the file, which is named anyway."""
    # A plain assert has no text: show the line.
    text = message_of(error).removeprefix(f'{file} ') or failing_line(error)
    text = printable(' '.join(text.split()), 1000)
    return text if isinstance(error, UserError) else f'{type(error).__name__}: {text}'
