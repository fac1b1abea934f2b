"""The tutorial: its notebook matches its page, and runs on drawn cells."""

import os
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from PIL import Image, ImageDraw
from traitlets.config import Config

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.export.formats import OLDEST_TORCH

from .workplace import ROOT, load_tool

tool = load_tool('dev/tutorial')
PAGE = (ROOT / 'docs' / 'start.md').read_text().partition(tool.MARK)[2]

SIZE = (160, 120)
# Radius and colour of each kind of cell, as in the photographs.
CELLS = {
    'RBC': (13, (215, 150, 140)),
    'WBC': (24, (110, 80, 190)),
    'Platelets': (6, (130, 110, 200)),
}
SPLITS = dict(train=range(12), val=range(12, 14), test=range(295, 297))
# All other commands are those of the page.
SHORT = {
    '--size 256 --epochs 10': '--size 128 --epochs 3',
    '--size 192 256': '--size 96 128',
}

ANNOTATION = (
    '<annotation><filename>{}.jpg</filename><size><width>{}</width><height>{}</height>'
    '<depth>3</depth></size>{}</annotation>'
)
OBJECT = (
    '<object><name>{}</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax>'
    '<ymax>{}</ymax></bndbox></object>'
)


def draw_data_set(root: Path) -> None:
    """Draw cells, with labels in the files and folders of BCCD."""
    for folder in ('JPEGImages', 'Annotations', 'ImageSets/Main'):
        (root / folder).mkdir(parents=True)
    for split, numbers in SPLITS.items():
        names = [f'BloodImage_{number:05}' for number in numbers]
        (root / 'ImageSets' / 'Main' / f'{split}.txt').write_text('\n'.join(names))
        for name, number in zip(names, numbers, strict=True):
            draw_image(root, name, number)


def draw_image(root: Path, name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    image = Image.new('RGB', SIZE, (225, 225, 215))
    pen = ImageDraw.Draw(image)
    # The data set has two boxes without area.
    objects = [OBJECT.format('RBC', 50, 50, 50, 50)] if seed < 2 else []
    for kind in (*CELLS, 'RBC', 'RBC'):
        radius, colour = CELLS[kind]
        x, y = (int(rng.integers(radius, side - radius)) for side in SIZE)
        corners = (x - radius, y - radius, x + radius, y + radius)
        pen.ellipse(corners, fill=colour)
        objects.append(OBJECT.format(kind, *corners))
    image.save(root / 'JPEGImages' / f'{name}.jpg')
    text = ANNOTATION.format(name, *SIZE, ''.join(objects))
    (root / 'Annotations' / f'{name}.xml').write_text(text)


@pytest.fixture
def _jupyter(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A kernel that imports this checkout, and writes nothing to the user's folders."""
    for variable in ('IPYTHONDIR', 'JUPYTER_RUNTIME_DIR'):
        monkeypatch.setenv(variable, str(tmp_path_factory.mktemp(variable)))
    startup = Path(os.environ['IPYTHONDIR']) / 'profile_default' / 'startup'
    startup.mkdir(parents=True)
    (startup / 'kernel_startup.py').symlink_to(ROOT / 'tests' / 'tools' / 'kernel_startup.py')
    monkeypatch.setenv('PYTHONPATH', str(ROOT), prepend=':')
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    monkeypatch.setenv('OMP_WAIT_POLICY', 'passive')


@pytest.mark.usefixtures('_jupyter')
@pytest.mark.parametrize('name', ['ptnt_mm', 'ptnt_mm-main', 'ptnt_mm-0.1.0-py3-none-any.whl'])
def test_the_first_cell_installs_what_was_uploaded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('PATH', '')
    monkeypatch.setattr('shutil.which', lambda _: None)
    no_history = Config(HistoryManager=dict(enabled=False))
    shell, installed = InteractiveShell(config=no_history), []
    shell.register_magic_function(installed.append, magic_name='pip')
    cell = next(c for c in tool.make_notebook(PAGE).cells if c.cell_type == 'code').source
    shell.run_cell(cell).raise_error()
    assert installed == [f'install -q "{tmp_path / name}[det,start,vis,export]"']
    (tmp_path / name).rmdir()
    with pytest.raises(AssertionError, match='upload a wheel or a checkout'):
        shell.run_cell(cell).raise_error()


def test_the_notebook_is_that_of_the_page():
    committed = nbformat.read(ROOT / 'docs' / 'tutorial.ipynb', as_version=4)
    hint = 'write the notebook again: python tools/dev/tutorial.py'
    assert committed == tool.make_notebook(PAGE), hint
    nbformat.validate(committed)


@pytest.mark.slow
@pytest.mark.timeout(900)  # eight commands
@pytest.mark.skipif(torch.__version__ < OLDEST_TORCH, reason='torch is too old to export')
@pytest.mark.usefixtures('_jupyter')
def test_the_notebook_runs(tmp_path: Path):
    """Prints lines like those on the page, with other numbers."""
    assert all(long in PAGE for long in SHORT)
    draw_data_set(tmp_path / 'BCCD_Dataset' / 'BCCD')
    notebook = tool.make_notebook(PAGE)
    for cell in notebook.cells:
        for long, short in SHORT.items():
            cell.source = cell.source.replace(long, short)
    runs = tool.read_runs(tool.execute(notebook, tmp_path))
    assert (tmp_path / 'bccd' / 'work_dir' / 'report.html').stat().st_size > 100_000
    drawn = tmp_path / 'found' / 'drawn' / 'BloodImage_00296.jpg'
    assert Image.open(drawn).size == SIZE
    assert [run.picture for run in runs if run.picture] == [drawn.read_bytes()]
    assert (tmp_path / 'cells.onnx').stat().st_size > 1_000_000
    page = tool.with_outputs(PAGE, runs)
    assert tool.make_notebook(page).cells[:5] == tool.make_notebook(PAGE).cells[:5]
    assert '12 to train on, 2 to validate, 2 to test' in page


@pytest.mark.slow
@pytest.mark.usefixtures('_jupyter')
def test_a_command_that_fails_stops_the_notebook(tmp_path: Path):
    page = '```shell\necho before; false\n```\n\n```shell\ntouch after\n```\n'
    with pytest.raises(UserError, match='(?s)before.*the command failed'):
        tool.execute(tool.make_notebook(page), tmp_path)
    assert not (tmp_path / 'after').exists()


def test_outputs_keep_their_words_and_get_new_numbers():
    shown = 'Took 5 s\n...\nEpoch [2/2] mAP: 0.1  ...\nDone: ...page.html'
    printed = (
        'Took 12 s\nEpoch [1/2] mAP: 0.25  loss: 3\nEpoch [2/2] mAP:  0.5  x\nDone: /a/page.html'
    )
    new = 'Took 12 s\n...\nEpoch [2/2] mAP:  0.5  ...\nDone: ...page.html'
    assert tool.refreshed(shown, printed) == new


def test_an_output_without_such_a_line_is_an_error():
    with pytest.raises(UserError, match='no line like .Found 5 cells.'):
        tool.refreshed('Found 5 cells', 'Found no cells')


def test_a_cell_may_have_other_code_than_its_page_and_links_become_text():
    page = (
        '# A [page](data.md#formats)\n\n<!-- cell\nif a:\n    b\n-->\n<!-- not run: no -->\n'
        '```shell\na \\\n  b\n```\n\n```text\nout\n```\n\n```shell\na \\\n  b\nc\n```\n'
    )
    first, *codes = tool.make_notebook(page).cells[:3]
    assert first.source == '# A page (`docs/data.md`)'
    assert [code.source for code in codes] == ['if a:\n    b', '!a \\\n  b\n!c']
