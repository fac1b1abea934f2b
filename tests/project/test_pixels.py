"""Projects of images whose pixels the hosts' loading would not keep."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from ptnt_mm.api import create_project
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.inspection import check
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.labels import LabelledImage, Labels
from ptnt_mm.workbench.project.profile import leave_out_narrow

pytestmark = pytest.mark.usefixtures('untried')


def pattern(number: int) -> np.ndarray:
    """Values from 0 to 255, (48, 64) float64."""
    y, x = np.mgrid[:48, :64]
    return (np.sin(x / (4 + number)) + np.cos(y / (5 + number)) + 2) / 4 * 255


def png(values: np.ndarray, file: Path) -> None:
    Image.fromarray(values).save(file.with_suffix('.png'))


def tiff(values: np.ndarray, file: Path, **options) -> None:
    tifffile.imwrite(file.with_suffix('.tif'), values, **options)


def class_folders(folder: Path, save) -> Path:
    for number in range(12):
        file = folder / ('cat', 'dog')[number % 2] / str(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        save(pattern(number), file)
    return folder


def twelve_bits(values: np.ndarray, file: Path) -> None:
    png((values * 16).astype(np.uint16), file)


def signed(values: np.ndarray, file: Path) -> None:
    tiff((values * 16 - 1000).astype(np.int16), file)


def floats(values: np.ndarray, file: Path) -> None:
    tiff((values / 255).astype(np.float32), file)


def integers_of_32_bits(values: np.ndarray, file: Path) -> None:
    tiff((values * 1000).astype(np.int32), file)


def mixed(values: np.ndarray, file: Path) -> None:
    if int(file.name) % 3:
        twelve_bits(values, file)
    else:
        png(values.astype(np.uint8), file)


@pytest.mark.parametrize(
    ('save', 'expected', 'named'),
    [
        (twelve_bits, (0, 4095), '12 of 12 images have 16-bit pixels'),
        (mixed, (0, 4095), '8 of 12 images have 16-bit pixels'),
        (signed, (-1000, 3100), '16-bit signed'),
        (floats, (0.0, 1.0), '32-bit float'),
        (integers_of_32_bits, (0, 262143), '32-bit signed'),
    ],
)
def test_the_config_states_the_range(tmp_path: Path, save, expected: tuple, named: str):
    lines: list[str] = []
    data = class_folders(tmp_path / 'data', save)
    file = create_project(data, tmp_path / 'project', on_line=lines.append)
    assert len(file.read_text().splitlines()) <= 40
    config = read_config(file)
    view = ConfigView(config)
    loading = [split.pipeline[0] for split in (view.train, view.val, view.test)]
    assert {step['value_range'] for step in loading} == {expected}
    assert [line for line in lines if named in line]
    wrong = [f for f in check(config, thorough=True) if f.severity is Severity.ERROR]
    assert not wrong and not [f for f in check(config) if 'grey levels' in str(f)]


def opaque(values: np.ndarray, file: Path) -> None:
    values = values.astype(np.uint8)
    tiff(np.dstack([values] * 3 + [values * 0 + 255]), file, extrasamples=['unassalpha'])


@pytest.mark.parametrize(
    'save',
    [
        lambda values, file: png((values * 257).astype(np.uint16), file),
        lambda values, file: png(values.astype(np.uint8), file),
        lambda values, file: png(values > 99, file),
        lambda values, file: png(np.dstack([values] * 4).astype(np.uint8), file),
        opaque,
    ],
    ids=['16 bits in full', '8 bits', 'one bit', 'RGBA', 'opaque TIFF'],
)
def test_sound_pixels_are_quiet(tmp_path: Path, save):
    lines: list[str] = []
    data = class_folders(tmp_path / 'data', save)
    file = create_project(data, tmp_path / 'project', on_line=lines.append)
    assert 'LoadImageInRange' not in read_config(file).pretty_text
    assert not (file.parent / 'problems.txt').exists()
    assert not [line for line in lines if 'pixels' in line and '  size: ' not in line]


def test_what_is_dropped_is_reported(tmp_path: Path):
    lines: list[str] = []
    data = class_folders(
        tmp_path / 'data',
        lambda values, file: tiff(
            np.stack([values] * 3).astype(np.uint8), file, photometric='minisblack'
        ),
    )
    create_project(data, tmp_path / 'project', on_line=lines.append)
    assert [line for line in lines if '12 images with several pages' in line and '3 pages' in line]


def test_images_that_no_loader_reads_are_refused(tmp_path: Path):
    def planes(values: np.ndarray, file: Path) -> None:
        tiff(np.stack([values] * 3).astype(np.uint16), file, photometric='rgb')

    with pytest.raises(UserError, match='TIFF with a plane for each colour'):
        create_project(class_folders(tmp_path / 'data', planes), tmp_path / 'project')


@pytest.mark.parametrize(
    ('size', 'task', 'asked', 'is_left_out'),
    [
        ((2000, 3), 'detection', None, True),
        ((3, 2000), 'instance', None, True),
        ((2000, 3), 'semantic', 1333, False),
        ((100, 1), 'detection', 64, True),
        ((2000, 30), 'detection', 64, False),
        ((2000, 3), 'classification', None, True),
        ((2000, 30), 'classification', None, False),
    ],
)
def test_images_too_narrow_to_be_resized_are_left_out(
    size: tuple[int, int], task: str, asked: int | None, is_left_out: bool
):
    images = [LabelledImage(Path('a.png'), (40, 30)), LabelledImage(Path('thin.png'), size)]
    labels = Labels(images=images)
    leave_out_narrow(labels, task, asked)
    assert (len(labels.images) == 1) == is_left_out
    assert [problem.file for problem in labels.problems] == [Path('thin.png')] * is_left_out
