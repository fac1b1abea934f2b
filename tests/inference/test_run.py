"""Images, videos and Ctrl-C, with an exported file that always finds the same."""

import errno
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from exported import export_detector
from PIL import Image

from ptnt_mm import api
from ptnt_mm.deploy import Detections
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run as run_command
from ptnt_mm.workbench.data.image_files import read_image

from .samples import photograph, write_heads_only
from .videos import frames_of, write_video


def detections(scores: Sequence[float]) -> Detections:
    """Objects of the first class, each over the whole of a small image."""
    boxes = np.array([[0.0, 0, 5, 3]] * len(scores), np.float32).reshape(-1, 4)
    return Detections(boxes, np.array(scores), np.zeros(len(scores), np.int64), None)


class Same:
    """Detects one object in each image, and is interrupted at the fourth."""

    images = 0
    names = ('thing',)

    def __call__(self, image: np.ndarray) -> Detections:
        self.images += 1
        if self.images == 4:
            raise KeyboardInterrupt
        return detections([0.9])


@pytest.fixture
def network() -> type[Same]:
    return Same


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: type[Same]) -> Path:
    """A working directory with an exported file, and a folder for images."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'in').mkdir()
    return exported(monkeypatch, network)


def exported(monkeypatch: pytest.MonkeyPatch, network: type[Same]) -> Path:
    calls = network()
    names = network.names and list(network.names)
    return export_detector(monkeypatch, Path('x.onnx'), calls, classes=names).absolute().parent


def infer(source: object, *flags: object) -> int:
    return run_command('infer', [str(source), 'x.onnx', *map(str, flags)])


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
        file='a.bmp',
        width=6,
        height=4,
        detections=[dict(label='thing', score=0.9, box=[0.0, 0.0, 5.0, 3.0])],
    )
    assert found['classes'] == ['thing'] and found['failed'] == []
    # One image per line, for reading and for grep.
    lines = (place / 'out' / 'predictions.json').read_text().splitlines()
    assert sum('"file"' in line for line in lines) == 3
    for name in names:
        drawn, image = (read_image(place / folder / name) for folder in ('out/drawn', 'in'))
        assert drawn.shape == image.shape and (drawn != image).any()
    printed = capsys.readouterr()
    paths = 'predictions  out/predictions.json\ndrawn        out/drawn\n'
    assert f'Processed 3 images\n{paths}' in printed.out
    # The oldest version of rich adds empty lines.
    assert printed.err.strip() == 'Skipped, not images: notes.txt', 'no bar without a terminal'


def test_pictures_of_other_kinds_are_counted(place: Path, capsys: pytest.CaptureFixture):
    for name in ('a.png', 'b.heic', 'c.heic'):
        save(place / 'in' / 'a.png').rename(place / 'in' / name)
    assert infer(save(place / 'in' / 'a.png').parent) == 0
    assert '2 .heic pictures left out: ' in capsys.readouterr().err


class Camera:
    """Stands for ``cv2.VideoCapture``: it states a number of frames, and has ``frames`` of them."""

    rate, frames, shape = 0.0, 2, (64, 96)

    def __init__(self, source: int | str):
        self._left = self.frames

    def isOpened(self) -> bool:  # noqa: N802
        return True

    def get(self, fact: int) -> float:
        return {cv2.CAP_PROP_FPS: self.rate, cv2.CAP_PROP_FRAME_COUNT: 100.0}[fact]

    def read(self) -> tuple[bool, np.ndarray | None]:
        self._left -= 1
        return (True, np.zeros((*self.shape, 3), np.uint8)) if self._left >= 0 else (False, None)


@pytest.mark.parametrize(('rate', 'used'), [(0.0, 25.0), (1000.0, 25.0), (999.0, 999.0)])
def test_a_webcam_states_anything(rate: float, used: float, place: Path, monkeypatch):
    monkeypatch.setattr(Camera, 'rate', rate)
    with monkeypatch.context() as patched:
        patched.setattr(cv2, 'VideoCapture', Camera)
        assert infer('97', '--out', 'out') == 0
    drawn = cv2.VideoCapture(str(place / 'out' / 'drawn' / 'webcam_97.mp4'))
    assert drawn.get(cv2.CAP_PROP_FPS) == used
    assert len(predictions(place / 'out')['images']) == 2


@pytest.mark.parametrize(
    ('text', 'is_video', 'out'),
    [
        ('a.png', False, 'a.png'),
        ('a.MP4', True, 'a.MP4'),
        ('clips.mp4', False, 'clips.mp4'),
        ('clips.mp4/..', False, 'here'),
        ('.', False, 'here'),
        ('1', False, '1'),
        ('2', True, 'webcam_2'),
    ],
)
def test_kinds_of_sources_and_folders_of_their_results(
    text: str, is_video: bool, out: str, place: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ('a.png', 'clips.mp4/a.png', '1/a.png'):
        save(place / 'here' / name)
    monkeypatch.setattr(Same, 'images', -99)
    monkeypatch.chdir(place / 'here')
    write_video(Path('a.MP4'), 2)
    if text == '2':
        monkeypatch.setattr(cv2, 'VideoCapture', Camera)
    assert run_command('infer', [text, '../x.onnx']) == 0
    images = predictions(Path('work_dirs', 'infer', out))['images']
    assert images and all(('frame' in image) == is_video for image in images)


def test_a_movie_that_cannot_be_written(place: Path, monkeypatch, capsys):
    monkeypatch.setattr(Camera, 'shape', (1, 1))
    monkeypatch.setattr(cv2, 'VideoCapture', Camera)
    assert infer('97', '--out', 'out') == 1
    assert 'cannot write a video of 1 x 1 pixels' in capsys.readouterr().err
    assert not list((place / 'out').rglob('*.mp4'))


@pytest.mark.parametrize('content', [b'', b'no video', None], ids=['empty', 'text', 'cut off'])
def test_an_unreadable_video_is_named(content: bytes | None, place: Path, capsys):
    file = write_video(place / 'x.mp4')
    # The index is at the end of the file.
    file.write_bytes(file.read_bytes()[:5000] if content is None else content)
    assert infer('x.mp4', '--out', 'out') == 1
    assert 'x.mp4 cannot be read as a video' in capsys.readouterr().err


def test_opencv_prints_its_other_errors_as_before(place: Path):
    set_level = getattr(cv2, 'setLogLevel', None) or cv2.utils.logging.setLogLevel
    before, variables = set_level(4), dict(os.environ)
    try:
        (place / 'x.mp4').touch()
        with pytest.raises(UserError):
            api.infer(None, 'x.onnx', 'x.mp4')
        assert set_level(before) == 4 and dict(os.environ) == variables
    finally:
        set_level(before)


def test_a_video_without_a_frame(place: Path, monkeypatch, capsys: pytest.CaptureFixture):
    monkeypatch.setattr(Camera, 'frames', 0)
    monkeypatch.setattr(cv2, 'VideoCapture', Camera)
    file = place / 'in' / 'clip.mp4'
    file.touch()
    assert infer(file, '--out', 'out') == 1
    assert 'clip.mp4 has no readable frame' in capsys.readouterr().err


def fail(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let drawing on wide images fail."""
    draw = cv2.rectangle

    def refused(image: np.ndarray, *words: object) -> np.ndarray:
        if image.shape[1] > 1000:
            raise error
        return draw(image, *words)

    monkeypatch.setattr(cv2, 'rectangle', refused)


def test_a_failure_does_not_stop_the_others(place: Path, monkeypatch, capsys):
    fail(monkeypatch, RuntimeError('too\nwide'))
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
    config, _ = write_heads_only(place, {}, dict(type='CocoDataset'), 1)
    config.dump(project / 'config.py')
    assert run_command('infer', ['in', 'cells', 'epoch_1.pth']) == 0
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


def test_a_name_that_looks_like_an_address(place: Path):
    write_video(place / '12:30.avi', frames=2, code='MJPG')
    assert infer('12:30.avi', '--out', 'run:1') == 0
    assert len(frames_of(place / 'run:1' / 'drawn' / '12:30.mp4')) == 2


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


@pytest.mark.parametrize(('key', 'frames'), [(-1, 3), (ord('q'), 1), (27, 1)])
def test_a_window_that_is_closed_ends_the_video(key: int, frames: int, place: Path, monkeypatch):
    monkeypatch.setenv('DISPLAY', ':0')
    shown = []
    monkeypatch.setattr(cv2, 'imshow', lambda title, image: shown.append(image.shape))
    monkeypatch.setattr(cv2, 'waitKey', lambda wait: key)
    file = write_video(place / 'in' / 'clip.avi', 3, 'MJPG')
    assert infer(file, '--out', 'out', '--show', '--no-draw') == 0
    assert len(predictions(place / 'out')['images']) == frames
    assert shown == [(64, 96, 3)] * frames
    assert not (place / 'out' / 'drawn').exists()


def test_a_window_without_a_screen_is_refused(place: Path, monkeypatch, capsys):
    for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
        monkeypatch.delenv(name, raising=False)
    assert infer(write_video(place / 'in' / 'clip.avi', 3, 'MJPG'), '--show') == 1
    assert '--show needs a screen' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        (('gone.jpg',), 'there is no image, folder or video gone.jpg'),
        (('x' * 300,), 'there is no image, folder or video xxx'),
        (('in',), 'in contains no files'),
        (('97',), 'there is no webcam 97'),
        *(((word,), f'no image, folder or video {word}') for word in ('-1', '1.5', 'rtsp://a')),
        (('x.onnx', '--show'), '--show is for a video or a webcam'),
        (('in', '--out', 'x.onnx'), '--out x.onnx: x.onnx is a file, not a folder'),
    ],
)
def test_bad_input(words: tuple, message: str, place: Path, capsys: pytest.CaptureFixture):
    assert infer(*words) == 1
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in place.iterdir()) == ['in', 'x.onnx']


@pytest.mark.parametrize(
    ('content', 'flags', 'message'),
    [
        (b'these are no weights', [], 'x.pth: is a text file'),
        (b'\0' * 600, ['--cfg-options', 'modle.x=1'], "did you mean 'model'"),
    ],
)
def test_a_checkpoint_and_changes_of_its_config_are_checked(
    content: bytes, flags: list[str], message: str, place: Path, capsys: pytest.CaptureFixture
):
    save(place / 'in' / 'a.png')
    (place / 'x.py').write_text('model = dict()\ntest_dataloader = dict()\n')
    (place / 'x.pth').write_bytes(content)
    assert run_command('infer', ['in', 'x.py', 'x.pth', *flags]) == 1
    assert message in capsys.readouterr().err


def test_missing_class_names_are_reported(place: Path, monkeypatch, capsys):
    monkeypatch.setattr(Same, 'names', None)
    exported(monkeypatch, Same)
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
        patched.setattr(Same, '__call__', lambda self, image: os.kill(os.getpid(), signal.SIGKILL))
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
    fail(monkeypatch, KeyError())
    assert infer(save(place / 'in' / 'a.png', width=2000)) == 1
    assert 'KeyError: test_run.py, line' in capsys.readouterr().err


class Choosy(Same):
    """Finds as many objects as an image has rows above four, and in four one with a low score."""

    names = ('ball',)

    def __call__(self, image: np.ndarray) -> Detections:
        rows = len(image)
        return detections([0.2999] if rows == 4 else [0.9] * max(rows - 4, 0))


@pytest.mark.parametrize('network', [Choosy])
@pytest.mark.parametrize(
    ('heights', 'line'),
    [
        ((5, 4, 7), 'Found 4 objects in 2 of 3 images\n  4 ball\n'),
        ((4, 3), 'Found no object in 2 of 2 images: the highest score there is 0.299, below --sco'),
        ((3,), "Found no object in the image: no score is above the model's own limit\n"),
    ],
)
def test_what_was_found_is_counted(
    heights: tuple, line: str, place: Path, capsys: pytest.CaptureFixture
):
    for number, height in enumerate(heights):
        save(place / 'in' / f'{number}.png', height)
    assert infer('in', '--out', 'out') == 0
    assert line in capsys.readouterr().out
