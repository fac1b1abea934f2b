"""The wheel: its content, and that building it does not change the checkout."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock
from markdown_it import MarkdownIt
from repository import ROOT

from ptnt_mm import __version__
from ptnt_mm.workbench.export.format_names import PACKAGES
from ptnt_mm.workbench.pages.report.report import _PACKAGES

SCRIPT = f'ptnt_mm-{__version__}.data/scripts/ptnt'


def build(source: Path, target: Path) -> zipfile.ZipFile:
    """Build the wheel of a source tree without the network."""
    options = ['--no-deps', '--no-build-isolation', '--no-index', '--quiet']
    command = [sys.executable, '-m', 'pip', 'wheel', *options, '-w', str(target), str(source)]
    # In the session of the forks, it would name these.
    subprocess.run(command, env={**os.environ, 'PTNT_HOSTS': ''}, check=True)
    return zipfile.ZipFile(next(target.glob('*.whl')))


def files_of(folder: Path) -> set[Path]:
    """The files of a checkout, without generated ones."""
    # Not through the environment, which has ten times as many files.
    tops = [path for path in folder.iterdir() if is_source(path.relative_to(folder))]
    paths = {path.relative_to(folder) for top in tops for path in (top, *top.rglob('*'))}
    return {path for path in paths if is_source(path)}


def is_source(path: Path) -> bool:
    """Hidden folders belong to tools, some of which write there while this test runs."""
    top = path.parts[0]
    return (
        not top.startswith('.')
        and top not in ('data', 'work_dirs')
        and '__pycache__' not in path.parts
    )


@pytest.fixture(scope='module')
def wheel(common: Path):
    """The first of the parallel processes builds it."""
    folder = common / 'wheel'
    with FileLock(folder.with_suffix('.lock')):
        if not folder.exists():
            before = files_of(ROOT)
            build(ROOT, folder).close()
            assert files_of(ROOT) == before
    with zipfile.ZipFile(next(folder.glob('*.whl'))) as archive:
        yield archive


def test_top_level_is_the_package_alone(wheel):
    top = {name.split('/')[0] for name in wheel.namelist()}
    assert top == {'ptnt_mm', *(f'ptnt_mm-{__version__}.{part}' for part in ('data', 'dist-info'))}
    # Files that go elsewhere.
    assert [name for name in wheel.namelist() if '.data/' in name] == [SCRIPT]


def test_carries_every_module_config_and_tool(wheel):
    package = ROOT / 'ptnt_mm'
    files = [*package.rglob('*.py'), *package.glob('workbench/pages/templates/*')]
    files += package.glob('weights/ptnt_ti_distilled.*')
    expected = {str(path.relative_to(ROOT)) for path in files}
    assert 'ptnt_mm/workbench/pages/templates/report.html' in expected
    for folder in ('configs', 'tools'):
        expected |= {
            f'ptnt_mm/.mim/{path.relative_to(ROOT)}'
            for path in (ROOT / folder).rglob('*')
            if path.is_file() and '__pycache__' not in path.parts
        }
    # For maintainers, who have a checkout.
    expected = {name for name in expected if '/tools/dev/' not in name}
    expected.add('ptnt_mm/.mim/model-index.yml')
    assert 'ptnt_mm/.mim/tools/train.py' in expected
    packed = {name for name in wheel.namelist() if name.startswith('ptnt_mm/')}
    assert packed == expected


def test_the_command_works_in_any_folder_without_a_checkout(wheel, tmp_path):
    """Also one that runs files next to the package."""
    site = tmp_path / 'site'
    wheel.extractall(site)
    assert wheel.read(SCRIPT).startswith(b'#!python\n')  # pip puts the right one there
    command = [sys.executable, str(site / SCRIPT), 'demo', '--train', '1', '--val', '1']
    subprocess.run(command, cwd=tmp_path, env={**os.environ, 'PYTHONPATH': str(site)}, check=True)
    assert (tmp_path / 'data/demo/annotations/instances_train.json').is_file()


def test_metadata(wheel):
    name = next(name for name in wheel.namelist() if name.endswith('.dist-info/METADATA'))
    lines = wheel.read(name).decode().splitlines()
    needed = [line for line in lines if line.startswith('Requires-Dist') and 'extra ==' not in line]
    assert [line.split()[1] for line in needed] == [
        'torch>=2.6',
        'mmengine<0.11,>=0.10.7',
        'packaging>=24.2',
        'rich>=13.4.2',
        'safetensors>=0.4.5',
        'shtab>=1.10',
    ]
    every = {line.split()[1] for line in lines if re.search(r'extra == .all.$', line)}
    named = {re.split('[<>=]', requirement)[0] for requirement in every}
    assert named >= {'mmdet', 'mmsegmentation', 'mmpretrain', 'timm', 'trackers', 'scikit-image'}
    assert named >= {*PACKAGES['onnx'], *_PACKAGES.split()}
    # The compiled mmcv is never required: each of its wheels fits only one torch.
    assert not any(re.match(r'Requires-Dist: mmcv\b(?!-)', line) for line in lines)
    for host, extra in (('mmdet', 'det'), ('mmsegmentation', 'seg')):
        for name in (host, 'mmcv-lite', 'torchvision', 'pycocotools'):
            pattern = rf"Requires-Dist: {name}\b.*; extra == ['\"]{extra}['\"]"
            assert any(re.match(pattern, line) for line in lines), (name, extra)
    assert any(name.endswith('/LICENSE') for name in wheel.namelist())


def targets(markdown: str) -> list[str]:
    """The addresses of links and pictures, as a package index renders them."""
    html = MarkdownIt('gfm-like', {'linkify': False}).render(markdown)
    return re.findall(r'(?:href|src)="([^"]*)"', html)


def test_the_description_has_no_link_that_a_package_index_breaks(wheel):
    name = next(name for name in wheel.namelist() if name.endswith('.dist-info/METADATA'))
    text = wheel.read(name).decode().split('\n\n', 1)[1]
    assert text.startswith('# ptnt_mm')
    found = targets(text)
    assert 'https://github.com/open-mmlab/mmdetection' in found
    assert all(target.startswith('https://') for target in found), found


def test_the_source_distribution_builds_the_same_wheel(wheel, tmp_path):
    copy = tmp_path / 'copy'
    for path in files_of(ROOT):
        if (ROOT / path).is_file():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, copy / path)
    command = [sys.executable, 'setup.py', '--quiet', 'sdist', '--dist-dir', str(tmp_path)]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    with build(next(tmp_path.glob('*.tar.gz')), tmp_path / 'wheel') as again:
        assert sorted(again.namelist()) == sorted(wheel.namelist())
