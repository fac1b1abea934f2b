"""The results of ``ptnt infer``: gathered, written as JSON, and summed up in a few lines."""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import floor
from pathlib import Path
from typing import Any

from ptnt_mm.utils.atomic_files import remove_partials, write_atomically
from ptnt_mm.utils.errors import UserError, message_of
from ptnt_mm.utils.frames import failing_line
from ptnt_mm.utils.tables import to_lines
from ptnt_mm.utils.text import counted, first_few, printable
from ptnt_mm.workbench.data.predictions import DRAWN, FILE, FORMAT
from ptnt_mm.workbench.inference.predictor import Predictor

_COUNTED = {'detections', 'classes'}  # values of an image that depend on its scores

_NOUNS = dict(detections='object', classes='class')


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


def reason_of(error: Exception, file: Path | None = None) -> str:
    """Explain in one line why an image failed, without the file, which its caller names."""
    # A plain assert has no text: show the line.
    text = message_of(error).removeprefix(f'{file} ') or failing_line(error)
    text = printable(' '.join(text.split()), 1000)
    return text if isinstance(error, UserError) else f'{type(error).__name__}: {text}'


def closing_lines(results: Results, predictor: Predictor) -> str:
    """A summary with the paths of the results, and with what was found."""
    images = counted(len(results.found), results.unit)
    if predictor.tiling is not None:
        images += f', those larger than {predictor.tiling.tile} pixels in tiles'
    paths = dict(predictions=results.file)
    if results.drawn.exists():
        paths['drawn'] = results.drawn
    found = _found(results, predictor)
    return '\n'.join((f'Processed {images}', to_lines(paths), *found))


def _found(results: Results, predictor: Predictor) -> Iterator[str]:
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
            tracker = predictor.tracker
            tracks = f': {counted(tracker.count, "track")}' if tracker else ''
            yield f'Found {counted(sum(counts), noun)} in {with_any} of {images}{tracks}'
            yield f'  {by_class}'
        elif without and predictor.highest_below is None:
            yield f"Found no {noun} in {where}: no score is above the model's own limit"
        elif without:
            # Rounded down: it must not seem to reach the limit.
            highest = floor(1000 * predictor.highest_below) / 1000
            yield (
                f'Found no {noun} in {where}: the highest score there is {highest}, '
                f'below {predictor.limit}'
            )
