"""The page of ``ptnt visualize``: predictions, the chosen box, and the page in a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from browser import PHONE, chromium, height, needs_chromium, quiet_page, width
from configs.models import build
from inference.samples import CLASSES, NAME, SEGMENTER, photograph, save, write_segmenter

import ptnt_mm
from ptnt_mm.api import visualize
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.image_files import encode_image
from ptnt_mm.workbench.pages.visualize.network import Network, load_network

IMAGE = photograph(96, 128)[..., ::-1]
SCRIPT = '<script>alert(1)</script><img src=x onerror=alert(2)>'


@pytest.fixture(scope='module')
def detector(checkpoint: Path) -> Network:
    return load_network(ConfigView(ptnt_mm.get_config(NAME)), str(checkpoint), 'cpu')


@pytest.fixture
def image(tmp_path: Path) -> Path:
    file = tmp_path / 'photo.png'
    file.write_bytes(encode_image(IMAGE, '.png'))
    return file


def test_boxes_are_numbered_from_the_best(detector: Network):
    found = detector.predict(IMAGE)
    scores = [box['score'] for box in found.boxes]
    assert 1 < len(scores) <= 100 and scores == sorted(scores, reverse=True)
    expected = detector.predictor.predict(IMAGE).pred_instances
    left, top, right, bottom = expected.bboxes[1].tolist()
    assert found.boxes[1]['box'] == pytest.approx((left, top, right - left, bottom - top), abs=0.02)
    assert found.boxes[1]['label'] == CLASSES[expected.labels[1]]


def test_masks_have_outlines(tmp_path: Path):
    config = ptnt_mm.get_config('demo_mask_rcnn_ptnt_ti')
    torch.manual_seed(0)
    file = save(build(config), config, dict(classes=CLASSES), tmp_path / 'masks.pth')
    network = load_network(ConfigView(config), str(file), 'cpu', score_thr=0.05)
    boxes = network.predict(IMAGE).boxes
    assert any(box['outline'] for box in boxes)


def test_a_map_and_the_shares_of_its_classes(tmp_path: Path):
    config = ptnt_mm.get_config(SEGMENTER)
    file = write_segmenter(tmp_path / 'maps.pth', config)
    found = load_network(ConfigView(config), str(file), 'cpu').predict(IMAGE)
    assert found.map.startswith('data:image/png;base64,')
    assert sum(entry['share'] for entry in found.classes) == pytest.approx(1, abs=1e-4)
    names = config.test_dataloader.dataset.metainfo.classes
    assert {entry['label'] for entry in found.classes} <= set(names)
    assert len({entry['colour'] for entry in found.classes}) == len(found.classes) > 1


def test_the_best_classes(tmp_path: Path):
    config = ptnt_mm.get_config('demo_classifier_ptnt_ti')
    model = build_model(config, 'the config')
    file = save(model, config, dict(classes=CLASSES), tmp_path / 'classes.pth')
    found = load_network(ConfigView(config), str(file), 'cpu').predict(IMAGE)
    shares = [entry['share'] for entry in found.classes]
    assert {entry['label'] for entry in found.classes} == set(CLASSES)
    assert sum(shares) == pytest.approx(1, abs=1e-3) and shares == sorted(shares, reverse=True)
    # The weights of a backbone are enough to visualise it.
    torch.save(model.backbone.state_dict(), tmp_path / 'backbone.pth')
    network = load_network(ConfigView(config), str(tmp_path / 'backbone.pth'), 'cpu')
    assert 'contains no weights of this head' in network.predict(IMAGE).note
    weights = model.backbone.state_dict().items()
    assert all(torch.equal(network.model.backbone.state_dict()[key], x) for key, x in weights)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path):
    torch.save(dict(weight=torch.ones(1)), tmp_path / 'other.pth')
    with pytest.raises(CheckpointError):
        load_network(ConfigView(ptnt_mm.get_config(NAME)), str(tmp_path / 'other.pth'), 'cpu')


def test_a_prediction_that_fails_leaves_the_figures(detector: Network, monkeypatch):
    def fail(image) -> None:
        raise KeyError('no such head\nand more')

    monkeypatch.setattr(detector.predictor, 'predict', fail)
    assert 'The prediction failed: KeyError' in detector.predict(IMAGE).note


def draw(image: Path, checkpoint: Path, **options) -> Path:
    """The page of the detector, of all images in the image's folder."""
    networks = [(ptnt_mm.get_config(NAME), str(checkpoint))]
    images = sorted(image.parent.glob('*.png'))
    out = image.parent / 'out'
    return visualize(networks, images, out=out, device='cpu', **options)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(box=1000), r'`box=1000`: .*photo\.png has \d+ boxes .* 0\.3 or more: expected 1 to'),
        (dict(box=1, score_thr=1.0), r'`box=1`: .*photo\.png has no box with a score of 1 or more'),
    ],
)
def test_a_box_that_does_not_exist(
    image: Path, checkpoint: Path, monkeypatch, options: dict, message: str
):
    monkeypatch.setattr(torch.nn.Module, 'register_forward_hook', None)  # none is recorded before
    with pytest.raises(UserError, match=message):
        draw(image, checkpoint, **options)
    assert not (image.parent / 'out').exists()


@pytest.fixture(scope='module')
def browser() -> Iterator:
    with chromium() as browser:
        yield browser


@pytest.fixture
def file(image: Path, checkpoint: Path, few_sections) -> Path:
    """A page with a box chosen, and a class and a file whose names are code."""
    content = torch.load(checkpoint, weights_only=False)
    content['meta']['dataset_meta'] = dict(classes=(SCRIPT,) * 4)
    torch.save(content, image.parent / 'named.pth')
    named = image.rename(image.parent / '<img src=x onerror=alert(3)>.png')
    (image.parent / 'second.png').write_bytes(named.read_bytes())
    return draw(named, image.parent / 'named.pth', box=2)


@needs_chromium
def test_the_page_in_a_browser(browser, file: Path):
    with quiet_page(browser, file) as page:
        boxes = page.locator('#predictions-1 svg > .label')
        rows = page.locator('#predictions-1 tbody tr')
        assert boxes.count() == rows.count() > 1
        assert boxes.last.text_content().startswith(f'1 {SCRIPT}'), 'the best on top'
        assert page.locator('img').count() == 0
        assert 'box 2, ' in page.locator('article > p').first.inner_text()
        assert page.locator('#colours-1 .choice.shape').count() > 0
        assert page.locator('#channels-1').get_attribute('open') is None
        page.get_by_role('link', name='Channels').first.click()
        assert page.locator('#channels-1').get_attribute('open') is not None
        layer, opacity = (
            page.locator('.layer').first,
            'element => getComputedStyle(element).opacity',
        )
        assert layer.evaluate(opacity) == '0.75'
        page.locator('#opacity').fill('0.2')
        assert layer.evaluate(opacity) == '0.2'


@needs_chromium
def test_a_phone_and_the_dark(browser, file: Path):
    colour = 'getComputedStyle(document.body).backgroundColor'
    with quiet_page(browser, file, viewport=PHONE, color_scheme='light') as page:
        assert page.locator('.section[open]').count() == 1
        assert width(page) == 390 and height(page) < 6000
        page.get_by_role('button', name='Open all').click()
        assert width(page) == 390
        light = page.evaluate(colour)
        page.emulate_media(color_scheme='dark')
        assert page.evaluate(colour) != light
