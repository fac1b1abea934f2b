"""A whole run over images, a folder, a video or a webcam: what ``tools/infer.py`` does."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mmengine.config import Config
from rich.console import Console
from rich.progress import Progress

from ptnt_mm.checkpoints.read import check_file, refuse_forced_unsafe_loading
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.inference.images import Images, drawn_name, encode_image, read_image
from ptnt_mm.inference.predictor import Predictor, load_predictor
from ptnt_mm.inference.results import FORMAT, ResultFolder, Results
from ptnt_mm.inference.sources import default_out, find_source
from ptnt_mm.inference.video import Movie, Video, Window
from ptnt_mm.utils.atomic_files import written_whole
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import name_some

_NO_NAMES = (
    'NO CLASS NAMES: neither the checkpoint nor the config has as many as the model has classes; '
    'they are called "class 0", "class 1" and so on'
)


def infer(args: argparse.Namespace) -> int:
    """Look at what the command line names; the exit status.

    Raises:
        UserError: for everything that the user can mend, at the end if an image failed.
    """
    config = _read(args)
    folder = ResultFolder(args.out or default_out(args.input), args.overwrite)
    if args.out is not None and args.out.resolve() == Path(args.input).resolve():
        raise UserError(f'--out {args.out} is the folder of the images: choose another one')
    source = find_source(args.input, folder.drawn)
    window = _window(source) if args.show else None
    predictor = load_predictor(config, args.checkpoint, args.device, args.score_thr)
    if predictor.classes is None:
        print(_NO_NAMES, file=sys.stderr)
    if isinstance(source, Images) and source.skipped:
        print(f'Skipped, no images: {name_some(map(str, source.skipped))}', file=sys.stderr)
    results = Results(
        dict(
            format=FORMAT,
            config=args.config,
            checkpoint=args.checkpoint,
            score_thr=predictor.score_thr,
            classes=predictor.classes,
        )
    )
    folder.prepare()
    run = _Run(predictor, results, folder, draws=not args.no_draw)
    try:
        if isinstance(source, Images):
            run.look_at_images(source)
        else:
            run.look_at_video(source, window)
    finally:
        # Whatever stops us, Ctrl-C for one: what was found is kept.
        results.write(folder.predictions)
        print(_closing(results, folder))
    if results.failed:
        raise UserError(f'{results.failed} of {results.failed + results.found} images failed')
    return 0


@dataclass
class _Run:
    """A predictor, and where what it finds goes."""

    predictor: Predictor
    results: Results
    folder: ResultFolder
    draws: bool

    def look_at_images(self, images: Images) -> None:
        """Look at image files; one that fails is reported, and the others go on."""
        with _progress() as bar:
            for name in bar.track(images.files, description='Images'):
                try:
                    entry, picture = self._look_at_file(images.root / name)
                except Exception as error:  # an image can fail in any way, out of memory for one
                    reason = _reason(error)
                    self.results.fail(name.as_posix(), reason)
                    _tell(bar, f'FAILED {name}: {reason}')
                    continue
                if picture is not None:
                    with written_whole(self.folder.drawn / drawn_name(name)) as partial:
                        partial.write_bytes(picture)
                self.results.add(dict(file=name.as_posix(), **entry))

    def look_at_video(self, video: Video, window: Window | None) -> None:
        """Look at the frames of a video until it ends or its window is closed.

        Raises:
            UserError: if it is damaged, or a frame cannot be looked at.
        """
        file = self.folder.drawn / f'{Path(video.name).stem}.mp4'
        frames = 0
        with _progress() as bar, Movie(file, video.fps) as movie:
            for frame in bar.track(video, total=video.announced, description='Frames'):
                try:
                    entry, drawn = self._look(frame, draws=self.draws or window is not None)
                except Exception as error:  # the others are as large, and would fail as well
                    raise UserError(f'{video.name}, frame {frames}: {_reason(error)}') from error
                if self.draws:
                    movie.add(drawn)
                self.results.add(dict(file=Path(video.name).name, frame=frames, **entry))
                frames += 1
                if window is not None and not window.show(drawn):
                    return
        video.check_end(frames)

    def _look_at_file(self, file: Path) -> tuple[dict, bytes | None]:
        """An image's entry, and its picture encoded."""
        entry, drawn = self._look(read_image(file), self.draws)
        return entry, None if drawn is None else encode_image(drawn, drawn_name(file).suffix)

    def _look(self, image: np.ndarray, draws: bool) -> tuple[dict, np.ndarray | None]:
        """What is found on an image, (H, W, 3) uint8, BGR, as JSON and as a picture."""
        sample = self.predictor.predict(image)
        height, width = image.shape[:2]
        entry = dict(width=width, height=height, **self.predictor.describe(sample))
        return entry, self.predictor.draw(image, sample) if draws else None


def _read(args: argparse.Namespace) -> Config:
    """Read the config, and look for the checkpoint, before anything slow is imported."""
    refuse_forced_unsafe_loading()
    if args.score_thr is not None and not 0 <= args.score_thr <= 1:
        raise UserError(f'--score-thr {args.score_thr}: expected a value from 0 to 1')
    config = read_config(args.config, args.cfg_options)
    require_keys(config, ('model', 'test_dataloader'))
    if '://' not in args.checkpoint:
        check_file(Path(args.checkpoint))
    return config


def _window(source: Images | Video) -> Window:
    if isinstance(source, Images):
        raise UserError('--show is for a video or a webcam; drawn pictures are files')
    return Window(source.name)


def _progress() -> Progress:
    return Progress(console=Console(stderr=True))


def _tell(bar: Progress, line: str) -> None:
    """Print a line above a progress bar, whatever the file names in it are made of."""
    printable = line.encode(errors='backslashreplace').decode()
    bar.console.print(printable, markup=False, highlight=False, soft_wrap=True)


def _reason(error: Exception) -> str:
    """Why an image failed, in one line."""
    text = ' '.join(str(error).split())
    return text if isinstance(error, UserError) else f'{type(error).__name__}: {text}'


def _closing(results: Results, folder: ResultFolder) -> str:
    """Where everything is."""
    images = f'{results.found} image{"" if results.found == 1 else "s"}'
    drawn = f'  drawn: {folder.drawn}' if folder.drawn.exists() else ''
    return f'Looked at {images}. Predictions: {folder.predictions}{drawn}'
