"""Lines of libraries that a user cannot act on: absent from commands, present elsewhere."""

import io
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import cv2
import pytest
from packaging.version import Version
from PIL import Image, TiffImagePlugin
from repository import environment


def tags_of_tiff() -> bytes:
    """Two tags of GeoTIFF, and one of no standard."""
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    for tag, kind, value in ((33550, 12, (1.0, 1.0, 0.0)), (42113, 2, '-1'), (65000, 2, 'own')):
        tags.tagtype[tag], tags[tag] = kind, value
    stream = io.BytesIO()
    Image.new('RGB', (8, 8)).save(stream, 'TIFF', tiffinfo=tags)
    return stream.getvalue()


def exif_of_jpeg() -> bytes:
    """EXIF whose value lies outside of it."""
    stream = io.BytesIO()
    Image.new('RGB', (8, 8)).save(stream, 'JPEG')
    exif = b'Exif\0\0II*\0\x08\0\0\0' + struct.pack('<HHHII', 1, 0x010F, 2, 99, 900)
    size = struct.pack('>H', len(exif) + 2)
    return b'\xff\xd8\xff\xe1' + size + exif + stream.getvalue()[2:]


READ = """
    import sys, warnings
    import ptnt_mm
    from ptnt_mm.utils.terminal import use_terminal
    from ptnt_mm.workbench.cli.loading import importing
    from ptnt_mm.workbench.cli.start import Parser

    def read(_=None):
        if 'command' in sys.argv:
            with importing():
                import cv2
        import cv2
        from PIL import Image
        assert cv2.imread('tags.tif') is not None
        Image.open('exif.jpg').getexif()
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
        truth = COCO('truth.json')
        scores = COCOeval(truth, truth.loadRes('found.json'), 'bbox')
        scores.evaluate()
        scores.accumulate()
        scores.summarize()
        import mmengine
        from mmengine.logging import MMLogger, print_log
        outside = 'print_log("the neck is deprecated", "current", 30)'
        exec(compile(outside, mmengine.__file__, 'exec'))
        logger = MMLogger.get_instance('run', log_file='run.log')
        if 'command' in sys.argv:
            use_terminal(logger)  # as the runner does
        sys.path.insert(0, '.')
        import theirs
        for line in (
            'warnings.warn("old() goes away", FutureWarning)',
            'warnings.warn("build_loss would be deprecated")',
            'warnings.warn("Detected call of `scheduler.step()` before `optimizer.step()`.")',
            'warnings.warn("the loss is infinite")',
            'compile(repr("x").replace("x", chr(92) + "d"), mmengine.__file__, "exec")',
        ):
            exec(compile(line, mmengine.__file__, 'exec'))
        in_a_host = 'print_log("the hook will be removed", "run", 30)'
        exec(compile(in_a_host, mmengine.__file__, 'exec'))
        print_log('my head will be removed', 'run', 30)
        print('the last line', file=sys.stderr)

    if 'command' in sys.argv:
        Parser('x').run(read, [])
    else:
        read()
"""

# Older versions of OpenCV and Python do not print these.
NOISE = (
    *(('TIFFReadDirectory',) if Version(cv2.__version__).major >= 5 else ()),
    *(('SyntaxWarning',) if sys.version_info >= (3, 12) else ()),
    'PIL/TiffImagePlugin.py',
    'index created!',
    'Loading and preparing results',
    'Accumulating evaluation results',
    'Average Precision',
    'FutureWarning',
    'build_loss',
    'Detected call',
    'the hook will be removed',
    'the neck is deprecated',
)
SIGNAL = (
    'the loss is infinite',
    'of the code of a user',
    'my head will be removed',
    'the last line',
)


def output(folder: Path, *words: str, **changes: str) -> str:
    # A command that a test before ran in this process has set them.
    inherited = {k: v for k, v in environment().items() if not k.startswith('OPENCV_')}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=inherited | changes,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('noise')
    (folder / 'tags.tif').write_bytes(tags_of_tiff())
    (folder / 'exif.jpg').write_bytes(exif_of_jpeg())
    (folder / 'read.py').write_text(textwrap.dedent(READ))
    (folder / 'theirs.py').write_text(
        'import warnings\nwarnings.warn("of the code of a user", DeprecationWarning)\n'
    )
    box = '"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]'
    (folder / 'found.json').write_text(f'[{{{box}, "score": 0.5}}]')
    (folder / 'truth.json').write_text(
        '{"info": {}, "images": [{"id": 1, "width": 9, "height": 9}], "categories": [{"id": 1, '
        f'"name": "a"}}], "annotations": [{{"id": 1, "area": 81, "iscrowd": 0, {box}}}]}}'
    )
    return folder


def test_a_command_shows_only_what_its_user_can_act_on(folder: Path):
    shown = output(folder, '-W', 'default', 'read.py')
    (folder / 'run.log').unlink()
    assert [text for text in (*NOISE, *SIGNAL) if text not in shown] == [], 'import silences'
    shown = output(folder, 'read.py', 'command')
    assert [text for text in NOISE if text in shown] == []
    # Python itself hides a DeprecationWarning outside of the main program.
    assert [text for text in SIGNAL if text not in shown] == ['of the code of a user']
    written = (folder / 'run.log').read_text()
    assert 'the hook will be removed' in written and 'my head will be removed' in written


def test_what_the_user_asks_for_is_shown(folder: Path):
    shown = output(folder, '-W', 'default', 'read.py', 'command', OPENCV_LOG_LEVEL='WARNING')
    assert 'of the code of a user' in shown and 'FutureWarning' in shown
    assert ('TIFFReadDirectory' in shown) == ('TIFFReadDirectory' in NOISE)
