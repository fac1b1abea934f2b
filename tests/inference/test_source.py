"""The kinds of sources, and the folders of their results."""

from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.inference.source import Source


@pytest.mark.parametrize(
    ('text', 'kind', 'out'),
    [
        ('a.png', 'images', 'a.png'),
        ('a.MP4', 'video', 'a.MP4'),
        ('clips.mp4', 'images', 'clips.mp4'),
        ('clips.mp4/..', 'images', 'here'),
        ('.', 'images', 'here'),
        ('1', 'images', '1'),
        ('2', 'webcam', 'webcam_2'),
    ],
)
def test_kinds_and_default_folders(
    text: str, kind: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here = tmp_path / 'here'
    for folder in ('clips.mp4', '1'):
        (here / folder).mkdir(parents=True)
    for file in ('a.png', 'a.MP4'):
        (here / file).touch()
    monkeypatch.chdir(here)
    source = Source(text)
    assert (source.is_video, source.is_webcam) == (kind != 'images', kind == 'webcam')
    assert source.default_out == Path('work_dirs', 'infer', out)


@pytest.mark.parametrize('text', ['b.png', '-1', '1.5', 'rtsp://camera'])
def test_what_is_not_there_is_named(text: str):
    with pytest.raises(UserError, match=f'there is no image, folder or video {text}'):
        Source(text)
