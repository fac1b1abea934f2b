"""Draw what a network sees, as a user types it."""

import re
from pathlib import Path

import pytest
import torch
from configs.models import narrow
from inference.samples import NAME, SEGMENTER, photograph
from PIL import Image

import ptnt_mm
from ptnt_mm.cli import visualize
from ptnt_mm.inference import network_figures
from ptnt_mm.inference.network import load_network
from ptnt_mm.inference.network_figures import SECTIONS, Scene
from ptnt_mm.models import PyramidTNT

pytest.importorskip('sklearn')


@pytest.fixture
def place(tmp_path: Path, monkeypatch, micro_arch) -> Path:
    """A folder with an image, a backbone's config and its weights; figures are few and quick."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(photograph(72, 100)).save('photo.png')
    Path('micro.py').write_text(f'model = dict(type="PyramidTNT", arch={micro_arch})\n')
    torch.manual_seed(0)
    torch.save(PyramidTNT(micro_arch).state_dict(), 'micro.pth')
    monkeypatch.setattr(visualize, 'SECTIONS', SECTIONS[:1])
    return tmp_path


def run(*words: str) -> int:
    return visualize.main([*words, '--device', 'cpu'])


def refusal(capsys, *words: str) -> str:
    assert run(*words) == 1
    return capsys.readouterr().err.splitlines()[-1]


def figures_on(page: Path) -> list[str]:
    """The figures that a page shows, all of which are there."""
    files = re.findall(r'<img src="(.+?)"', page.read_text())
    assert all(Image.open(page.parent / file).size[0] > 500 for file in files)
    return files


def test_a_backbone_with_and_without_weights(place: Path, capsys):
    assert run('micro.py', 'micro.pth', 'photo.png') == 0
    page = Path('work_dirs/visualize/micro/index.html')
    assert capsys.readouterr().out.splitlines()[-1] == f'Page: {page}'
    assert figures_on(page) == ['1_photo/stages.png']
    text = page.read_text()
    assert 'weights: micro.pth' in text and '100 x 72 pixels' in text
    assert 'exists: choose another --out' in refusal(capsys, 'micro.py', 'photo.png')
    assert run('micro.py', 'photo.png', 'photo.png', '--overwrite') == 0
    assert 'weights: random numbers' in page.read_text()
    page.write_text('of somebody else')
    assert 'is not a page of ptnt' in refusal(capsys, 'micro.py', 'photo.png', '--overwrite')


def test_an_earlier_page_goes_with_its_figures_and_nothing_else(place: Path):
    Path('photo.png').rename('50%25 #1.png')
    assert run('micro.py', '50%25 #1.png', '--out', 'out') == 0
    old = Path('out/1_50%25 #1')
    assert old.joinpath('stages.png').is_file()
    old.joinpath('mine.png').write_text('')
    Path('out/9_own').mkdir()
    Path('out/9_own/stages.png').write_text('')
    page = Path('out/index.html')
    assert '<img src="1_50%2525%20%231/stages.png"' in page.read_text()
    page.write_text(page.read_text() + '<img src="../micro.py"><img src="1_x%2F..%2F..%2Fa.png">')
    Path('a.png').write_text('')

    Path('50%25 #1.png').rename('other.png')
    assert run('micro.py', 'other.png', '--out', 'out', '--overwrite') == 0
    left = {str(file) for file in Path('out').rglob('*.png')}
    assert left == {'out/1_other/stages.png', 'out/9_own/stages.png', f'{old}/mine.png'}
    assert Path('micro.py').exists() and Path('a.png').exists()
    assert run('micro.py', 'micro.pth', 'other.png', '--out', 'out', '--overwrite') == 0
    assert figures_on(page) == ['1_other/stages.png'], 'figures of the same name stay'


@pytest.mark.parametrize(
    ('others', 'shown'),
    [
        (['micro.pth'], 'micro.py, weights: micro.pth'),
        (['other.py'], 'other.py, weights: random numbers'),
        (['other.py', 'micro.pth'], 'other.py, weights: micro.pth'),
    ],
)
def test_versus(place: Path, monkeypatch, others: list[str], shown: str):
    monkeypatch.setattr(visualize, 'SECTIONS', ())
    Path('other.py').write_text(Path('micro.py').read_text())
    assert run('micro.py', 'photo.png', '--out', 'out', '--versus', *others) == 0
    assert shown in Path('out/index.html').read_text().partition('<h2>Network B</h2>')[2]


def test_refusals(place: Path, capsys, monkeypatch):
    assert 'name one behind it' in refusal(capsys, 'micro.py', 'micro.pth')
    assert 'missing.png' in refusal(capsys, 'micro.py', 'missing.png')
    said = refusal(capsys, 'micro.py', 'photo.png', '--query', '100', '3')
    assert said == 'error: --query 100 3: photo.png has 100 x 72 pixels'
    words = ('micro.py', 'photo.png', '--versus', 'a', 'b', 'c')
    assert '--versus takes a checkpoint, a config' in refusal(capsys, *words)
    said = refusal(capsys, 'micro.py', 'photo.png', '--channels', '16')
    assert said == 'error: --channels 16: expected numbers from 0 to 15'
    Image.fromarray(photograph(4, 100)).save('low.png')
    assert 'at least 8x8 pixels' in refusal(capsys, 'micro.py', 'low.png')
    Path('other.py').write_text('model = dict(type="TransposedConvNeck", in_channels=[8])')
    assert 'has no backbone of ours' in refusal(capsys, 'other.py', 'photo.png')
    monkeypatch.setattr(visualize, 'find_spec', lambda name: None)
    said = refusal(capsys, 'micro.py', 'photo.png')
    assert said == 'error: ptnt visualize needs scikit-learn: pip install scikit-learn'


def scene_of(place: Path, *configs: str, **options) -> Scene:
    labels = 'AB' if len(configs) > 1 else ['']
    image = photograph(72, 100)
    networks = [load_network(ptnt_mm.engine.config.read_config(c), None, 'cpu') for c in configs]
    seen = {a: n.look(image[..., ::-1]) for a, n in zip(labels, networks, strict=True)}
    return Scene(image, seen, (50.0, 36.0), **options)


def headings(scene: Scene) -> dict[str, list[str]]:
    return {s.name: [row.heading for row in s.rows(scene)] for s in SECTIONS}


@pytest.fixture
def no_tsne(monkeypatch) -> None:
    """Half a second each."""
    monkeypatch.setattr(network_figures, 'scatter_channels', lambda feature: feature[:, 0, :2])


def test_all_sections_of_a_pyramid(place: Path, no_tsne):
    found = headings(scene_of(place, 'micro.py'))
    assert found['neck'] == found['neck_channels'] == []
    assert found['channels'][1] == 'stage 2, block 3: 16 channels, 5 x 7'
    assert found['words'][1] == 'stage 2, block 2: 4 channels, 20 x 28'
    assert found['attention'][0] == 'stage 1, block 1: 2 heads, averaged'
    assert found['inner_attention'][-1] == 'stage 4, block 5: 1 head'
    assert found['tables'][0] == 'stage 1: 2 heads, averaged'
    assert found['tsne'] == ['every point is a channel']
    assert {len(found[name]) for name in ('attention', 'tables', 'channels')} == {4}


def test_what_is_not_there_leaves_no_rows(place: Path, no_tsne):
    Path('cpvt.py').write_text('model = dict(type="CPVT", arch=dict(depth=2, dim=8, heads=2))')
    found = headings(scene_of(place, 'cpvt.py', 'micro.py'))
    assert found['words'][0].startswith('B: ') and len(found['words']) == 5
    assert [row[:3] for row in found['attention']][:3] == ['A: ', 'B: ', 'A: ']
    scene = scene_of(place, 'cpvt.py')
    found = headings(scene)
    assert found['words'] == found['inner_attention'] == found['tables'] == []
    panels = SECTIONS[5].rows(scene)[0].panels
    assert [panel.title for panel in panels] == ['attention', 'attention of the class token']


def test_attention_and_tables_are_in_place(place: Path, no_tsne):
    scene = scene_of(place, 'micro.py', channels=(3, 1))
    sections = {section.name: section.rows(scene) for section in SECTIONS}
    attention, without, table = sections['attention'][0].panels
    # 9 x 13 sentences of 8 x 8 pixels look at averages of 4 x 4.
    assert attention.values.shape == (3, 4) and attention.place == (0, 128, 96, 0)
    assert attention.values.sum() == pytest.approx(100) == without.values.sum()
    assert attention.frame == (48, 56, 40, 32)
    assert attention.scale == without.scale != table.scale
    learned, resized = sections['tables'][0].panels
    assert learned.values.shape == (16 * 4, 16 * 4) and resized.values.shape == (9 * 3, 13 * 4)
    # A row of the table is the map of its sentence.
    assert resized.values[4 * 3 : 5 * 3, 6 * 4 : 7 * 4] == pytest.approx(table.values, abs=1e-5)
    assert [panel.title for panel in sections['channels'][0].panels] == ['channel 3', 'channel 1']
    received, taken = sections['inner_attention'][0].panels[1:]
    assert received.values.shape == (4, 4) and taken.values.shape == (16, 16)
    assert taken.values[:4, :4].sum() == pytest.approx(100)


def test_a_detector_and_a_segmenter(place: Path):
    pytest.importorskip('mmdet')
    pytest.importorskip('mmseg')
    image = photograph(100, 150)[..., ::-1]
    recording = load_network(ptnt_mm.get_config(NAME), None, 'cpu').look(image)
    # From 100 x 150 to 171 x 256 pixels, padded to 192 x 256.
    assert recording.blocks[0].cell == pytest.approx((8 * 100 / 171, 8 * 150 / 256))
    names = [level.name for level in recording.necks]
    assert names[0] == 'TransposedConvNeck, level 1' and names[-1] == 'FPN, level 5'
    assert recording.necks[0].cell == pytest.approx((8 * 100 / 171, 8 * 150 / 256))
    network = load_network(ptnt_mm.get_config(SEGMENTER), None, 'cpu')
    assert len(network.look(image).stages()) == 4


def test_a_classifier(place: Path, no_tsne, micro_arch):
    pytest.importorskip('mmpretrain')
    config = narrow(ptnt_mm.get_config('demo_classifier_ptnt_ti'), micro_arch)
    recording = load_network(config, None, 'cpu').look(photograph(72, 100)[..., ::-1])
    assert [block.cell for block in recording.shown()][0] == (8, 8), 'neither resized nor cropped'
    assert recording.necks == [], 'its neck returns no map'
