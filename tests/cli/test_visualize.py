"""``ptnt visualize``, as a user runs it."""

import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from inference.samples import photograph
from PIL import Image

from ptnt_mm.models import PyramidTNT
from ptnt_mm.workbench.cli.main import run as run_command

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path, monkeypatch, micro_arch, few_sections) -> Path:
    """A folder with an image, a backbone's config and its weights; figures are few and quick."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(photograph(72, 100)).save('photo.png')
    Path('micro.py').write_text(f'model = dict(type="PyramidTNT", arch={micro_arch})\n')
    torch.manual_seed(0)
    torch.save(PyramidTNT(micro_arch).state_dict(), 'micro.pth')
    return tmp_path


def run(*words: str) -> int:
    return run_command('visualize', [*words, '--device', 'cpu'])


def refusal(capsys, *words: str) -> str:
    assert run(*words) == 1
    return capsys.readouterr().err.splitlines()[-1]


def test_a_backbone_with_and_without_weights(place: Path, capsys):
    assert run('micro.py', 'micro.pth', 'photo.png') == 0
    page = Path('work_dirs/visualize/micro/index.html')
    assert capsys.readouterr().out.splitlines()[-1] == f'Page: {page}'
    text = page.read_text()
    assert [file.name for file in page.parent.iterdir()] == ['index.html'], 'it has its pictures'
    assert '<dd>micro.pth</dd>' in text and '100 × 72 pixels' in text
    sections = re.findall('<details class="section" id="(.*?)"', text)[1:]
    assert sections == ['colours-1', 'similarity-1', 'channels-1']
    assert 'exists: choose another --out' in refusal(capsys, 'micro.py', 'photo.png')
    Path('work_dirs/visualize/micro/mine.png').write_text('')
    assert run('micro.py', 'photo.png', '--overwrite') == 0
    assert 'random initialisation' in page.read_text() and (page.parent / 'mine.png').exists()
    page.write_text('of somebody else')
    assert 'is not a page of ptnt' in refusal(capsys, 'micro.py', 'photo.png', '--overwrite')


def test_the_best_checkpoint_of_the_work_dir_is_used(place: Path, capsys):
    work_dir = Path('work_dirs/micro')
    work_dir.mkdir(parents=True)
    shutil.copy('micro.pth', work_dir / 'epoch_3.pth')
    assert run('micro.py', 'photo.png') == 0
    assert capsys.readouterr().out.startswith('Checkpoint: work_dirs/micro/epoch_3.pth\n')
    assert (
        '<dd>work_dirs/micro/epoch_3.pth</dd>'
        in Path('work_dirs/visualize/micro/index.html').read_text()
    )


def test_pages_of_projects_are_named_after_their_folders(place: Path, monkeypatch, capsys):
    Path('cards').mkdir()
    Path('micro.py').rename('cards/config.py')
    assert run('cards', 'photo.png') == 0
    monkeypatch.chdir('cards')
    assert run('config.py', '../photo.png', '--out', 'page') == 0
    assert capsys.readouterr().out.splitlines()[-1] == 'Page: page/index.html'
    monkeypatch.chdir(place)
    for folder in ('cards/visualize', 'cards/page'):
        assert '<title>What cards sees' in Path(folder, 'index.html').read_text()


def test_headings_and_ids_occur_once(place: Path, monkeypatch):
    Image.fromarray(photograph(64, 64)).save('other.png')
    assert run('micro.py', 'micro.pth', 'photo.png', 'other.png', '--out', 'out') == 0
    text = Path('out/index.html').read_text()
    ids = re.findall(r'\bid="(.*?)"', text)
    assert len(ids) == len(set(ids)) and {'colours-1', 'colours-2', 'similarity-2'} < set(ids)
    assert re.findall('<h2>(.*?)</h2>', text) == ['photo.png', 'other.png']
    for link in re.findall('href="#(.*?)"', text):
        assert link in ids, 'contents lead somewhere'


@pytest.mark.parametrize(
    ('others', 'shown'),
    [
        (['micro.pth'], 'micro.pth'),
        (['other.py'], 'random initialisation'),
        (['project'], 'random initialisation'),
        (['other.py', 'micro.pth'], 'micro.pth'),
    ],
)
def test_versus(place: Path, monkeypatch, others: list[str], shown: str):
    Path('project').mkdir()
    for other in ('other.py', 'project/config.py'):
        shutil.copy('micro.py', other)
    assert run('micro.py', 'photo.png', '--out', 'out', '--versus', *others) == 0
    assert shown in Path('out/index.html').read_text().partition('<dt>Network B</dt>')[2][:60]


def test_the_chosen_point_is_named_and_outlined(place: Path):
    assert run('micro.py', 'micro.pth', 'photo.png', '--at', '20,30.5', '--out', 'out') == 0
    text = Path('out/index.html').read_text()
    assert 'shown for the point 20, 30.5.' in text
    assert re.search(r'class="shape choice" cx="20.0" cy="30.5"', text)


def test_refusals(place: Path, capsys, monkeypatch):
    assert 'micro.pth is not an image: add one' in refusal(capsys, 'micro.py', 'micro.pth')
    Path('photos').mkdir()
    assert 'photos is a folder: name its images' in refusal(capsys, 'micro.py', 'photos')
    assert 'missing.png' in refusal(capsys, 'micro.py', 'missing.png')
    words = ('micro.py', 'photo.png', '--versus', 'a', 'b', 'c')
    assert '--versus takes a checkpoint, a config' in refusal(capsys, *words)
    said = refusal(capsys, 'micro.py', 'photo.png', '--channels', '16')
    assert said == 'error: --channels 16: expected numbers from 0 to 15'
    Image.fromarray(photograph(4, 100)).save('low.png')
    assert 'at least 8x8 pixels' in refusal(capsys, 'micro.py', 'low.png')
    Path('other.py').write_text('model = dict(type="TransposedConvNeck", in_channels=[8])')
    assert 'TransposedConvNeck has no backbone' in refusal(capsys, 'other.py', 'photo.png')
    monkeypatch.setitem(sys.modules, 'sklearn', None)
    said = refusal(capsys, 'micro.py', 'photo.png')
    assert said == 'error: ptnt visualize needs more packages: pip install scikit-learn'


@pytest.mark.parametrize('point', ['100,3', '3,72', '-0.5,3', 'nan,3', '3,inf'])
def test_a_point_outside_the_image_is_refused_before_a_model_is_built(
    place: Path, capsys, point: str
):
    Path('micro.py').write_text('model = dict(type="PyramidTNT", arch="of no such size")')
    said = refusal(capsys, 'micro.py', 'photo.png', f'--at={point}')
    assert f'--at {point}' in said and 'photo.png has 100 x 72 pixels' in said


@pytest.mark.parametrize(
    'words', [('--at', '5'), ('--at', 'a,b'), ('--at', '1,2,3'), ('--box', '0')]
)
def test_what_is_no_point_and_no_number(place: Path, capsys, words: tuple[str, str]):
    with pytest.raises(SystemExit):
        run('micro.py', 'photo.png', *words)
    assert repr(words[1]) in capsys.readouterr().err


def test_only_a_trained_detector_has_boxes(place: Path, capsys):
    """It is refused before a model is built, which fails here."""
    Path('micro.py').write_text('model = dict(type="PyramidTNT", arch="of no such size")')
    assert 'is not a detector' in refusal(capsys, 'micro.py', 'photo.png', '--box', '1')
    words = ('demo_retinanet_ptnt_ti', 'photo.png', '--box', '1')
    words += ('--cfg-options', 'model.backbone.arch=x')
    assert '--box 1 needs a checkpoint' in refusal(capsys, *words)
