"""Images, videos and Ctrl-C, with a predictor that always gives the same result."""

import errno
import json
import os
import signal
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from ptnt_mm.workbench.cli.main import run as run_command
from ptnt_mm.workbench.data.image_files import read_image
from ptnt_mm.workbench.inference import infer as inferring
from ptnt_mm.workbench.inference.image_loaders import LoadedImage
from ptnt_mm.workbench.inference.predictor import Predictor

from .samples import photograph
from .test_video import frames_of, write_video


class Same(Predictor):
    """Detects one object in each image; fails on wide ones, and is interrupted at the fourth."""

    images = 0
    names = ('thing',)

    def __init__(self):
        super().__init__(None, dict(classes=self.names), 0.3)

    def predict(self, image: LoadedImage) -> str:
        self.images += 1
        if image.size[1] > 1000:
            raise RuntimeError('too\nwide')
        if self.images == 4:
            raise KeyboardInterrupt
        return 'thing'

    def describe(self, sample: str) -> dict:
        return dict(detections=[dict(label=sample)])

    def draw(self, image: np.ndarray, sample: str) -> np.ndarray:
        return 255 - image


@pytest.fixture
def predictor() -> type[Same]:
    return Same


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predictor: type[Same]) -> Path:
    """A working directory with placeholder files for config and checkpoint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inferring, 'load_predictor', lambda *arguments: predictor())
    (tmp_path / 'x.py').write_text('model = dict()\ntest_dataloader = dict()\n')
    (tmp_path / 'x.pth').write_bytes(b'\0' * 600)
    (tmp_path / 'in').mkdir()
    return tmp_path


def infer(source: object, *flags: object) -> int:
    return run_command('infer', [str(source), 'x.py', 'x.pth', *map(str, flags)])


def predictions(folder: Path) -> dict:
    return json.loads((folder / 'predictions.json').read_text())


def save(file: Path, height: int = 4, width: int = 6) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(photograph(height, width)).save(file)
    return file


def test_pictures_keep_their_names(place: Path, capsys: pytest.CaptureFixture):
    names = ['a.bmp', 'a.png', 'below/a.png']
    for name in names:
        save(place / 'in' / name)
    (place / 'in' / 'notes.txt').touch()
    assert infer('in', '--out', 'out') == 0
    found = predictions(place / 'out')
    assert [entry['file'] for entry in found['images']] == names
    assert found['images'][0] == dict(
        file='a.bmp', width=6, height=4, detections=[dict(label='thing')]
    )
    assert found['classes'] == ['thing'] and found['failed'] == []
    # One image per line, for reading and for grep.
    lines = (place / 'out' / 'predictions.json').read_text().splitlines()
    assert sum('"file"' in line for line in lines) == 3
    for name in names:
        np.testing.assert_array_equal(
            read_image(place / 'out' / 'drawn' / name), 255 - read_image(place / 'in' / name)
        )
    printed = capsys.readouterr()
    assert printed.out.startswith(
        'Processed 3 images\npredictions  out/predictions.json\ndrawn        out/drawn\n'
    )
    # The oldest version of rich adds empty lines.
    assert printed.err.strip() == 'Skipped, not images: notes.txt', 'no bar without a terminal'


def test_pictures_of_other_kinds_are_counted(place: Path, capsys: pytest.CaptureFixture):
    for name in ('a.png', 'b.heic', 'c.heic'):
        save(place / 'in' / 'a.png').rename(place / 'in' / name)
    assert infer(save(place / 'in' / 'a.png').parent) == 0
    assert '2 .heic pictures left out: ' in capsys.readouterr().err


class Camera:
    """Stands for ``cv2.VideoCapture``: it states a number of frames, and has ``frames`` of them."""

    rate, frames = 0.0, 2

    def __init__(self, source: int | str):
        self._left = self.frames

    def isOpened(self) -> bool:  # noqa: N802
        return True

    def get(self, fact: int) -> float:
        return {cv2.CAP_PROP_FPS: self.rate, cv2.CAP_PROP_FRAME_COUNT: 100.0}[fact]

    def read(self) -> tuple[bool, np.ndarray | None]:
        self._left -= 1
        return (True, np.zeros((64, 96, 3), np.uint8)) if self._left >= 0 else (False, None)


@pytest.mark.parametrize(('rate', 'used'), [(0.0, 25.0), (1000.0, 25.0), (999.0, 999.0)])
def test_a_webcam_states_anything(rate: float, used: float, place: Path, monkeypatch):
    monkeypatch.setattr(Camera, 'rate', rate)
    with monkeypatch.context() as patched:
        patched.setattr(cv2, 'VideoCapture', Camera)
        assert infer('97', '--out', 'out') == 0
    drawn = cv2.VideoCapture(str(place / 'out' / 'drawn' / 'webcam_97.mp4'))
    assert drawn.get(cv2.CAP_PROP_FPS) == used
    assert len(predictions(place / 'out')['images']) == 2


def test_a_video_without_a_frame(place: Path, monkeypatch, capsys: pytest.CaptureFixture):
    monkeypatch.setattr(Camera, 'frames', 0)
    monkeypatch.setattr(cv2, 'VideoCapture', Camera)
    file = place / 'in' / 'clip.mp4'
    file.touch()
    assert infer(file, '--out', 'out') == 1
    assert 'clip.mp4 has no readable frame' in capsys.readouterr().err


def test_a_failure_does_not_stop_the_others(place: Path, capsys: pytest.CaptureFixture):
    save(place / 'in' / 'a.png')
    (place / 'in' / 'b.png').write_text('no image')
    save(place / 'in' / 'c.png', width=2000)
    save(place / 'in' / 'd [x].png')
    assert infer('in', '--out', 'out') == 1
    found = predictions(place / 'out')
    assert [entry['file'] for entry in found['images']] == ['a.png', 'd [x].png']
    assert found['failed'] == [
        dict(file='b.png', reason='is not an image, or damaged'),
        dict(file='c.png', reason='RuntimeError: too wide'),
    ]
    errors = capsys.readouterr().err
    assert 'FAILED c.png: RuntimeError: too wide' in errors
    assert errors.endswith('error: 2 of 4 images failed\n')


def test_ctrl_c_keeps_what_was_found(place: Path, capsys: pytest.CaptureFixture):
    for number in range(6):
        save(place / 'in' / f'{number}.png')
    assert infer('in') == 130
    out = place / 'work_dirs' / 'infer' / 'in'
    assert len(predictions(out)['images']) == len(list((out / 'drawn').iterdir())) == 3
    printed = capsys.readouterr()
    assert 'Processed 3 images\npredictions  work_dirs/infer/in/predictions.json' in printed.out
    assert printed.err.endswith('Stopped.\n')


def test_a_project_gets_the_results(place: Path):
    save(place / 'in' / 'a.png')
    project = place / 'cells'
    project.mkdir()
    (place / 'x.py').rename(project / 'config.py')
    assert run_command('infer', ['in', 'cells', 'x.pth']) == 0
    assert len(predictions(project / 'infer' / 'in')['images']) == 1


def test_few_grey_levels_are_reported(place: Path, monkeypatch, capsys: pytest.CaptureFixture):
    monkeypatch.setattr(Same, 'images', -99)
    values = photograph(60, 90)[..., 0].astype(np.uint16)
    for name, factor in (('dim', 16), ('full', 257)):
        for number in range(2):
            file = place / name / f'{number}.png'
            file.parent.mkdir(exist_ok=True)
            Image.fromarray(values * factor).save(file)
        assert infer(name, '--out', f'out_{name}') == 0
        said = capsys.readouterr().err
        if name == 'dim':
            assert '2 images: 0.png (16-bit, values from 0 to 4080: 17 of 256' in said
        else:
            assert 'GREY LEVELS' not in said


def test_a_single_image_without_drawing(place: Path):
    assert infer(save(place / 'in' / 'a.png'), '--no-draw') == 0
    out = place / 'work_dirs' / 'infer' / 'a.png'
    assert [path.name for path in out.iterdir()] == ['predictions.json']
    assert predictions(out)['images'][0]['file'] == 'a.png'


def test_results_below_the_images(place: Path, capsys: pytest.CaptureFixture):
    save(place / 'in' / 'a.png')
    assert infer('in', '--out', 'in/found') == 0
    assert infer('in', '--out', 'in/found') == 1, 'nothing is replaced unasked'
    assert infer('in', '--out', 'in/found', '--overwrite') == 0
    assert len(predictions(place / 'in' / 'found')['images']) == 1
    video = write_video(place / 'in' / 'found' / 'drawn' / 'clip.mp4')
    for source in ('in/found/drawn', 'in/found/drawn/a.png', 'in/found/drawn/clip.mp4'):
        assert infer(source, '--out', 'in/found', '--overwrite') == 1
        assert 'is inside in/found/drawn, which is replaced' in capsys.readouterr().err
    assert (place / 'in' / 'found' / 'drawn' / 'a.png').is_file() and video.is_file()


@pytest.mark.parametrize('name', ['predictions.json', 'drawn/mine.png'])
def test_files_of_others_are_never_replaced(name: str, place: Path, capsys):
    save(place / 'in' / 'a.png')
    file = place / 'out' / name
    file.parent.mkdir(parents=True)
    file.write_text('[]')
    assert infer('in', '--out', 'out', '--overwrite') == 1
    assert 'is not from this tool' in capsys.readouterr().err and file.read_text() == '[]'


def test_file_names_that_are_not_utf8(place: Path, capsys: pytest.CaptureFixture):
    (place / 'in' / 'f\udce4hre.png').write_text('no image')
    assert infer('in', '--out', 'out') == 1
    assert predictions(place / 'out')['failed'][0]['file'] == 'f\udce4hre.png'
    assert 'hre.png: is not an image' in capsys.readouterr().err


def test_a_video(place: Path, capsys: pytest.CaptureFixture):
    file = write_video(place / 'in' / 'clip.avi', frames=3, code='MJPG')
    assert infer(file, '--out', 'out') == 0
    found = predictions(place / 'out')['images']
    assert [(entry['file'], entry['frame']) for entry in found] == [
        ('clip.avi', number) for number in range(3)
    ]
    drawn = place / 'out' / 'drawn' / 'clip.mp4'
    assert cv2.VideoCapture(str(drawn)).get(cv2.CAP_PROP_FPS) == 12.5
    assert [frame.shape for frame in frames_of(drawn)] == [(64, 96, 3)] * 3
    printed = capsys.readouterr().out
    assert 'Processed 3 frames\n' in printed and 'Found 3 objects in 3 of 3 frames\n' in printed


def test_ctrl_c_keeps_the_frames_so_far(place: Path):
    file = write_video(place / 'in' / 'clip.mp4', frames=9)
    assert infer(file, '--out', 'out') == 130
    assert len(predictions(place / 'out')['images']) == 3
    assert len(frames_of(place / 'out' / 'drawn' / 'clip.mp4')) == 3


def test_a_video_that_is_cut_off(place: Path, monkeypatch, capsys: pytest.CaptureFixture):
    monkeypatch.setattr(Same, 'images', -99)
    file = write_video(place / 'in' / 'clip.avi', code='MJPG')
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert infer(file, '--out', 'out') == 1
    frames = len(predictions(place / 'out')['images'])
    assert frames > 0
    assert f'clip.avi ends after {frames} of 20 frames' in capsys.readouterr().err


def test_a_window_that_is_closed_ends_the_video(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('DISPLAY', ':0')
    shown = []
    monkeypatch.setattr(cv2, 'imshow', lambda title, image: shown.append(image.shape))
    monkeypatch.setattr(cv2, 'waitKey', lambda wait: ord('q'))
    file = write_video(place / 'in' / 'clip.avi', code='MJPG')
    assert infer(file, '--out', 'out', '--show', '--no-draw') == 0
    assert len(predictions(place / 'out')['images']) == 1 and shown == [(64, 96, 3)]
    assert not (place / 'out' / 'drawn').exists()


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        (('gone.jpg',), 'there is no image, folder or video gone.jpg'),
        (('in',), 'in contains no files'),
        (('97',), 'there is no webcam 97'),
        (('x.pth', '--show'), '--show is for a video or a webcam'),
        (('in', '--cfg-options', 'modle.x=1'), "did you mean 'model'"),
        (('in', '--out', 'x.pth'), '--out x.pth: x.pth is a file, not a folder'),
    ],
)
def test_bad_input(words: tuple, message: str, place: Path, capsys: pytest.CaptureFixture):
    assert infer(*words) == 1
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in place.iterdir()) == ['in', 'x.pth', 'x.py']


def test_text_file_as_checkpoint_is_refused(place: Path, capsys: pytest.CaptureFixture):
    save(place / 'in' / 'a.png')
    (place / 'x.pth').write_text('these are no weights\n')
    assert infer('in') == 1
    assert 'x.pth: is a text file' in capsys.readouterr().err


def test_missing_class_names_are_reported(place: Path, monkeypatch, capsys):
    monkeypatch.setattr(Same, 'names', None)
    assert infer(save(place / 'in' / 'a.png')) == 0
    assert 'NO CLASS NAMES' in capsys.readouterr().err
    assert predictions(place / 'work_dirs' / 'infer' / 'a.png')['classes'] is None


def test_results_do_not_go_among_the_images(place: Path, capsys: pytest.CaptureFixture):
    save(place / 'in' / 'a.png')
    assert infer('in', '--out', place / 'in') == 1
    assert 'is the folder of the images: choose another one' in capsys.readouterr().err
    assert infer('in', '--out', place / 'in' / 'found') == 0


NAMES = [
    'x' * 251 + '.png',
    'ä' * 125 + '.jpg',
    'a\nb.png',
    ' a .png',
    '-a.png',
    'f\udce4hre.png',
    '[red].png',
]


def test_any_name_that_the_system_allows(place: Path, monkeypatch: pytest.MonkeyPatch):
    """Also one at a time: the name becomes that of the output folder."""
    monkeypatch.setattr(Same, 'images', -99)
    for name in NAMES:
        save(place / 'in' / name)
    assert infer('in', '--out', 'out') == 0
    assert [entry['file'] for entry in predictions(place / 'out')['images']] == sorted(NAMES)
    assert sorted(path.name for path in (place / 'out' / 'drawn').iterdir()) == sorted(NAMES)
    for name in NAMES:
        assert infer(place / 'in' / name) == 0
        assert (place / 'work_dirs' / 'infer' / name / 'drawn' / name).is_file()


def test_a_picture_whose_name_would_be_too_long(place: Path):
    """Images with unknown suffixes become PNG."""
    names = ['x' * 252 + '.ab', 'x' * 252 + '.cd']
    for name in names:
        save(place / 'in' / 'a.png').rename(place / 'in' / name)
        assert infer(place / 'in' / name, '--out', place / name[-2:]) == 0
    drawn = [next((place / folder / 'drawn').iterdir()).name for folder in ('ab', 'cd')]
    assert drawn[0] != drawn[1]
    assert all(name.startswith('x' * 200) and name.endswith('.png') for name in drawn)


def test_a_picture_that_cannot_be_written_does_not_stop_the_others(
    place: Path, monkeypatch, capsys
):
    for number in range(3):
        save(place / 'in' / f'{number}.png')
    refuse(monkeypatch, '1.png', errno.EILSEQ)
    assert infer('in', '--out', 'out') == 1
    found = predictions(place / 'out')
    assert [entry['file'] for entry in found['images']] == ['0.png', '2.png']
    assert [entry['file'] for entry in found['failed']] == ['1.png']
    assert 'FAILED 1.png' in capsys.readouterr().err and found['finished']


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_stops_at_once(place: Path, monkeypatch, capsys, number: int):
    """The other pictures could not be written, either."""
    for name in range(3):
        save(place / 'in' / f'{name}.png')
    refuse(monkeypatch, '1.png', number)
    assert infer('in', '--out', 'out') == 1
    found = predictions(place / 'out')
    assert len(found['images']) == 1 and not found['finished']
    assert f'1.png cannot be written: {os.strerror(number)}' in capsys.readouterr().err


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    """Make renaming a file fail."""
    replace = os.replace

    def refused(source: Path, target: Path) -> None:
        if Path(target).name == name:
            raise OSError(number, os.strerror(number))
        replace(source, target)

    monkeypatch.setattr(os, 'replace', refused)


def test_the_folder_of_a_killed_run_can_be_used_again(place: Path, monkeypatch, capsys):
    for number in range(3):
        save(place / 'in' / f'{number}.png')
    with monkeypatch.context() as patched:
        patched.setattr(Same, 'describe', lambda self, sample: os.kill(os.getpid(), signal.SIGKILL))
        child = os.fork()
        if child == 0:
            infer('in', '--out', 'out')
            os._exit(0)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    # As in a run that is killed later.
    (place / 'out' / 'drawn').mkdir()
    (place / 'out' / 'drawn' / 'old.png').touch()
    (place / 'out' / '.predictions.json.partial-1').touch()
    (place / 'out' / 'mine.txt').touch()
    assert predictions(place / 'out')['finished'] is False
    assert infer('in', '--out', 'out') == 1
    assert '--overwrite' in capsys.readouterr().err
    assert infer('in', '--out', 'out', '--overwrite') == 0
    assert sorted(path.name for path in (place / 'out').rglob('*')) == [
        '0.png', '1.png', '2.png', 'drawn', 'mine.txt', 'predictions.json',
    ]  # fmt: skip


def test_a_failure_without_a_text_names_its_line(place: Path, capsys, monkeypatch):
    def fail(self: Same, image: LoadedImage) -> str:
        raise KeyError

    monkeypatch.setattr(Same, 'predict', fail)
    assert infer(save(place / 'in' / 'a.png')) == 1
    assert 'KeyError: test_run.py, line' in capsys.readouterr().err


class Choosy(Same):
    """Finds as many objects as an image has rows above four, with scores that are too low."""

    highest_below = None
    limit = '--score-thr 0.3'

    def describe(self, sample: np.ndarray) -> dict:
        if len(sample) == 4:
            self.highest_below = max(self.highest_below or 0, 0.2999)
        return dict(detections=[dict(label='ball')] * max(len(sample) - 4, 0))

    def predict(self, image: LoadedImage) -> np.ndarray:
        return image.pixels


@pytest.mark.parametrize('predictor', [Choosy])
@pytest.mark.parametrize(
    ('heights', 'line'),
    [
        ((5, 4, 7), 'Found 4 objects in 2 of 3 images\n  4 ball\n'),
        ((4, 3), 'Found no object in 2 of 2 images: the highest score there is 0.299, below --sco'),
        ((3,), 'Found no object in the image at any score\n'),
    ],
)
def test_what_was_found_is_counted(
    heights: tuple, line: str, place: Path, capsys: pytest.CaptureFixture
):
    for number, height in enumerate(heights):
        save(place / 'in' / f'{number}.png', height)
    assert infer('in', '--out', 'out') == 0
    assert line in capsys.readouterr().out
