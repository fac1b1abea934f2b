"""Figures of recordings: their rows, and the positions of their maps."""

from pathlib import Path

import numpy as np
import pytest
import torch
from configs.models import narrow
from inference.samples import NAME, SEGMENTER, photograph

import ptnt_mm
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.pages.visualize.network import load_network
from ptnt_mm.workbench.pages.visualize.scene import ChosenPlace, RecordedScene
from ptnt_mm.workbench.pages.visualize.sections import SECTIONS

MIDDLE = ChosenPlace('the middle', (50.0, 36.0, 0, 0), given=False)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch, micro_arch) -> None:
    """A folder with configs of backbones; t-SNE takes half a second for each map."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('sklearn.manifold.TSNE.fit_transform', lambda self, x: x[:, :2])
    Path('micro.py').write_text(f'model = dict(type="PyramidTNT", arch={micro_arch})\n')
    Path('cpvt.py').write_text('model = dict(type="CPVT", arch=dict(depth=2, dim=8, heads=2))')


def scene_of(*configs: str, choice: ChosenPlace = MIDDLE, **options) -> RecordedScene:
    labels = 'AB' if len(configs) > 1 else ['']
    image = photograph(72, 100)
    networks = [load_network(ConfigView(read_config(config)), None, 'cpu') for config in configs]
    seen = {a: n.record(image[..., ::-1]) for a, n in zip(labels, networks, strict=True)}
    return RecordedScene(seen, choice, **options)


def rows_of(scene: RecordedScene) -> dict[str, list]:
    return {section.name: section.rows(scene) for section in SECTIONS}


def headings(scene: RecordedScene) -> dict[str, list[str]]:
    return {name: [row.heading for row in rows] for name, rows in rows_of(scene).items()}


def test_all_sections_of_a_pyramid():
    found = headings(scene_of('micro.py'))
    assert found['colours'] == found['similarity'] == ['backbone'], 'there is no neck'
    assert found['channels'][1] == 'stage 2, block 3: 16 channels, 5 x 7'
    assert found['words'][1] == 'stage 2, block 2: 4 channels, 20 x 28'
    assert found['attention'][0] == 'stage 1, block 1: 2 heads, averaged'
    assert found['inner_attention'][-1] == 'stage 4, block 5: 1 head'
    assert found['tables'][0] == 'stage 1: 2 heads, averaged'
    assert len(found['tsne']) == 1
    assert {len(found[name]) for name in ('attention', 'tables', 'channels')} == {4}


def test_what_is_not_there_leaves_no_rows():
    found = headings(scene_of('cpvt.py', 'micro.py'))
    assert found['words'][0].startswith('B: ') and len(found['words']) == 5
    assert [row[:3] for row in found['attention']][:3] == ['A: ', 'B: ', 'A: ']
    rows = rows_of(scene_of('cpvt.py'))
    assert rows['words'] == rows['inner_attention'] == rows['tables'] == []
    titles = [panel.title for panel in rows['attention'][0].panels]
    assert titles == ['attention (%)', 'attention of the class token (%)']


def test_attention_and_tables_are_in_place():
    rows = rows_of(scene_of('micro.py', channels=(3, 1)))
    attention, without, table = rows['attention'][0].panels
    # 9 x 13 sentences of 8 x 8 pixels attend to averages of 4 x 4.
    assert attention.values.shape == (3, 4) and attention.place == (0, 0, 128, 96)
    assert attention.values.sum() == pytest.approx(100) == without.values.sum()
    assert attention.frame == (48, 32, 8, 8)
    assert attention.scale == without.scale != table.scale
    learned, resized = rows['tables'][0].panels
    assert learned.values.shape == (16 * 4, 16 * 4) and resized.values.shape == (9 * 3, 13 * 4)
    # A row of the table is the map of its sentence.
    assert resized.values[4 * 3 : 5 * 3, 6 * 4 : 7 * 4] == pytest.approx(table.values, abs=1e-5)
    assert [panel.title for panel in rows['channels'][0].panels] == ['channel 3', 'channel 1']
    received, taken = rows['inner_attention'][0].panels[1:]
    assert received.values.shape == (4, 4) and taken.values.shape == (16, 16)
    assert taken.values[:4, :4].sum() == pytest.approx(100)


@pytest.mark.parametrize(
    ('box', 'covered'),
    [
        ((0, 0, 16, 8), [(0, 0), (0, 1)]),
        ((9, 9, 2, 2), [(1, 1)]),  # smaller than a place
        ((20, 12, 0, 0), [(1, 2)]),  # a point
        ((-30, -30, 34.1, 34.1), [(0, 0)]),  # boxes may end outside the image
        ((31.5, 23.5, 0, 0), [(2, 3)]),
        ((40, 40, 10, 10), [(2, 3)]),
    ],
)
def test_places_that_a_choice_covers(box, covered):
    found = ChosenPlace('', box).covers((3, 4), (8.0, 8.0))
    assert list(zip(*map(np.ndarray.tolist, np.nonzero(found)), strict=True)) == covered


def test_a_box_decides_on_attention_similarity_and_channels():
    choice = ChosenPlace('box 1, cup 0.90', (8.0, 16.0, 24.0, 16.0))
    scene = scene_of('micro.py', choice=choice)
    rows = rows_of(scene)
    first = rows['attention'][0]
    assert first.heading == 'stage 1, block 1: 6 sentences, 2 heads, averaged'
    assert first.panels[0].frame == (8, 16, 24, 16)
    (block, *_) = scene.recordings[''].chosen_blocks()
    mean = np.mean([block.attention([13 * y + x])[:, 0] for y in (2, 3) for x in (1, 2, 3)])
    assert first.panels[0].values[0, 0] == pytest.approx(100 * mean, rel=1e-4)
    similar = rows['similarity'][0].panels[0].values
    assert similar[2:4, 1:4].mean() > similar.mean() and np.abs(similar).max() <= 1 + 1e-5
    feature = scene.recordings[''].stages()[0].feature
    standing_out = (feature[:, 2:4, 1:4].mean(axis=(1, 2)) - feature.mean(axis=(1, 2))) / (
        feature.std(axis=(1, 2))
    )
    assert rows['channels'][0].panels[0].title == f'channel {standing_out.argmax()}'


def test_a_detector_and_a_segmenter():
    image = photograph(100, 150)[..., ::-1]
    recording = load_network(ConfigView(ptnt_mm.get_config(NAME)), None, 'cpu').record(image)
    # From 100 x 150 to 171 x 256 pixels, padded to 192 x 256.
    assert recording.blocks[0].cell == pytest.approx((8 * 100 / 171, 8 * 150 / 256))
    names = [level.name for level in recording.necks]
    assert names[0] == 'FPN, level 1' and names[-1] == 'FPN, level 5'
    assert recording.necks[0].cell == pytest.approx((8 * 100 / 171, 8 * 150 / 256))
    network = load_network(ConfigView(ptnt_mm.get_config(SEGMENTER)), None, 'cpu')
    assert len(network.record(image).stages()) == 4


def test_a_classifier(micro_arch):
    config = narrow(ptnt_mm.get_config('demo_classifier_ptnt_ti'), micro_arch)
    network = load_network(ConfigView(config), None, 'cpu')
    recording = network.record(photograph(72, 100)[..., ::-1])
    assert recording.chosen_blocks()[0].cell == (8, 8), 'neither resized nor cropped'
    assert recording.necks == [], 'its neck returns no map'
    assert 'without a checkpoint' in network.predict(photograph(72, 100)).note


def test_a_classifiers_image_is_normalised_as_in_training(micro_arch):
    config = narrow(ptnt_mm.get_config('demo_classifier_ptnt_ti'), micro_arch)
    config.model.data_preprocessor.update(mean=[1, 2, 3], std=[2, 2, 2], to_rgb=False)
    network = load_network(ConfigView(config), None, 'cpu')
    seen = []
    network.model.backbone.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    network.record(np.full((72, 100, 3), (30, 20, 10), np.uint8))
    assert seen[0].shape == (1, 3, 72, 100) and seen[0][0, :, 0, 0].tolist() == [14.5, 9, 3.5]


def test_a_classifier_of_the_host():
    config = ptnt_mm.get_config('demo_classifier_ptnt_ti')
    backbone = dict(_delete_=True, type='ResNet', depth=18, num_stages=4, out_indices=(2, 3))
    config.merge_from_dict(dict(model=dict(backbone=backbone, head=dict(in_channels=512))))
    network = load_network(ConfigView(config), None, 'cpu')
    recording = network.record(photograph(64, 96)[..., ::-1])
    assert [level.feature.shape for level in recording.stages()] == [(256, 4, 6), (512, 2, 3)]
    assert recording.blocks == [], 'its attention, if it has any, is not recorded'


def test_any_backbone_gets_the_weights_of_its_init_cfg(tmp_path: Path):
    config = ptnt_mm.get_config('demo_classifier_ptnt_ti')
    backbone = dict(_delete_=True, type='ResNet', depth=18, num_stages=4, out_indices=(3,))
    config.merge_from_dict(dict(model=dict(backbone=backbone, head=dict(in_channels=512))))
    weights = build_model(config).backbone.state_dict()
    torch.save(weights, tmp_path / 'resnet.pth')
    init = dict(type='Pretrained', checkpoint=str(tmp_path / 'resnet.pth'))
    config.model.backbone.init_cfg = init
    network = load_network(ConfigView(config), None, 'cpu')
    assert network.weights == init['checkpoint']
    found = network.model.backbone.state_dict()
    assert all(torch.equal(found[key], weight) for key, weight in weights.items())
    init['checkpoint'] = 'missing.pth'
    config.model.backbone.init_cfg = init
    with pytest.raises(UserError, match='missing.pth'):
        load_network(ConfigView(config), None, 'cpu')
