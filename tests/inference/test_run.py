"""What becomes of images, videos and Ctrl-C, with a predictor that finds the same everywhere."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from ptnt_mm.cli import infer as infer_command
from ptnt_mm.inference.images import read_image
from ptnt_mm.inference.video import open_video

from .samples import photograph
from .test_video import write_video


class Same:
    """Finds one thing on every image; wide ones are too wide, and the fourth is interrupted."""

    classes = ('thing',)
    score_thr = 0.3
    images = 0

    def predict(self, image: np.ndarray) -> str:
        self.images += 1
        if image.shape[1] > 1000:
            raise RuntimeError('too\nwide')
        if self.images == 4:
            raise KeyboardInterrupt
        return 'thing'

    def describe(self, sample: str) -> dict:
        return dict(detections=[dict(label=sample)])

    def draw(self, image: np.ndarray, sample: str) -> np.ndarray:
        return 255 - image


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with files in the place of config and checkpoint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(infer_command, 'load_predictor', lambda *arguments: Same())
    (tmp_path / 'x.py').write_text('model = dict()\ntest_dataloader = dict()\n')
    (tmp_path / 'x.pth').write_bytes(b'\0' * 600)
    (tmp_path / 'in').mkdir()
    return tmp_path


def infer(source: object, *flags: object) -> int:
    return infer_command.main([str(source), 'x.py', 'x.pth', *map(str, flags)])


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
    for name in names:
        np.testing.assert_array_equal(
            read_image(place / 'out' / 'drawn' / name), 255 - read_image(place / 'in' / name)
        )
    printed = capsys.readouterr()
    assert printed.out.startswith('Looked at 3 images. Predictions: out/predictions.json  drawn: ')
    assert 'Skipped, no images: notes.txt' in printed.err


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
    assert 'Looked at 3 images. Predictions: work_dirs/infer/in/predictions.json' in printed.out
    assert printed.err.endswith('Stopped.\n')


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
    for source in ('in/found/drawn', 'in/found/drawn/a.png'):
        assert infer(source, '--out', 'in/found', '--overwrite') == 1
        assert 'lies in in/found/drawn, which is replaced' in capsys.readouterr().err
    assert (place / 'in' / 'found' / 'drawn' / 'a.png').is_file()


def test_names_that_are_no_text(place: Path, capsys: pytest.CaptureFixture):
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
    drawn = open_video(place / 'out' / 'drawn' / 'clip.mp4')
    assert (drawn.fps, drawn.announced) == (12.5, 3)
    assert [frame.shape for frame in drawn] == [(64, 96, 3)] * 3
    assert 'Looked at 3 images.' in capsys.readouterr().out


def test_ctrl_c_keeps_the_frames_so_far(place: Path):
    file = write_video(place / 'in' / 'clip.mp4', frames=9)
    assert infer(file, '--out', 'out') == 130
    assert len(predictions(place / 'out')['images']) == 3
    assert len(list(open_video(place / 'out' / 'drawn' / 'clip.mp4'))) == 3


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
    monkeypatch.setattr(cv2, 'imshow', lambda *image: None)
    monkeypatch.setattr(cv2, 'waitKey', lambda wait: ord('q'))
    file = write_video(place / 'in' / 'clip.avi', code='MJPG')
    assert infer(file, '--out', 'out', '--show', '--no-draw') == 0
    assert len(predictions(place / 'out')['images']) == 1
    assert not (place / 'out' / 'drawn').exists()


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        (('gone.jpg',), 'there is no image, folder or video gone.jpg'),
        (('in',), 'in holds no images and 0 other files'),
        (('97',), 'there is no webcam 97'),
        (('in', '--score-thr', '30'), '--score-thr 30.0: expected a value from 0 to 1'),
        (('x.pth', '--show'), '--show is for a video or a webcam'),
        (('in', '--cfg-options', 'modle.x=1'), "did you mean 'model'"),
        (('in', '--out', 'x.pth'), 'x.pth is not a folder'),
    ],
)
def test_bad_input(words: tuple, message: str, place: Path, capsys: pytest.CaptureFixture):
    assert infer(*words) == 1
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in place.iterdir()) == ['in', 'x.pth', 'x.py']


def test_a_checkpoint_that_is_none(place: Path, capsys: pytest.CaptureFixture):
    save(place / 'in' / 'a.png')
    (place / 'x.pth').write_text('these are no weights\n')
    assert infer('in') == 1
    assert 'x.pth: is a text file' in capsys.readouterr().err


def test_unsafe_loading_is_refused(place: Path, monkeypatch, capsys: pytest.CaptureFixture):
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    assert infer('in') == 1
    assert 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1' in capsys.readouterr().err


def test_a_model_without_class_names_says_so(place: Path, monkeypatch, capsys):
    monkeypatch.setattr(Same, 'classes', None)
    assert infer(save(place / 'in' / 'a.png')) == 0
    assert 'NO CLASS NAMES' in capsys.readouterr().err
    assert predictions(place / 'work_dirs' / 'infer' / 'a.png')['classes'] is None


def test_results_do_not_go_among_the_images(place: Path, capsys: pytest.CaptureFixture):
    save(place / 'in' / 'a.png')
    assert infer('in', '--out', place / 'in') == 1
    assert 'is the folder of the images: choose another one' in capsys.readouterr().err
    assert infer('in', '--out', place / 'in' / 'found') == 0
