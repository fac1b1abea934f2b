"""Detection in the tiles of large images, with and without masks."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from blobs import SQUARES, Blobs, picture
from exported import export_detector
from pycocotools import mask as coco

from ptnt_mm.api import infer, load_predictor
from ptnt_mm.deploy import Detections
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run as run_command
from ptnt_mm.workbench.data.masks import encode_mask, encode_patch
from ptnt_mm.workbench.data.tiles import Tiling

from .samples import NAME, photograph

LONG = (10, 106, 190, 150)
"""It is longer than two tiles."""


@pytest.fixture
def detect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict]]:
    """The detections in an image, or in its tiles."""

    def detect(image: np.ndarray, network: Blobs, **options: float) -> list[dict]:
        has_masks = network.has_masks
        export_detector(monkeypatch, tmp_path / 'x.onnx', network, has_masks=has_masks)
        cv2.imwrite(str(tmp_path / 'x.png'), image)
        out = tmp_path / 'found'
        options = dict(score_thr=0.5, draw=False, overwrite=True) | options
        file = infer(None, tmp_path / 'x.onnx', tmp_path / 'x.png', out, **options)
        (found,) = json.loads(file.read_text())['images']
        return found['detections']

    return detect


@pytest.mark.parametrize(
    'kinds', [{}, {'has_masks': True}, {'has_masks': True, 'has_boxes': False}]
)
@pytest.mark.parametrize('overlap', [0.2, 0.5])
def test_objects_across_tiles_are_whole(kinds: dict, overlap: float, detect: Callable):
    image = picture([*SQUARES, LONG])
    found = detect(image, Blobs(**kinds), tile=64, overlap=overlap)
    boxes = sorted(detection['box'] for detection in found)
    # A pixel of the shrunk image is three of the image.
    np.testing.assert_allclose(boxes, sorted([*SQUARES, LONG]), atol=4)
    if 'has_masks' in kinds:
        masks = np.sum([coco.decode(detection['mask']) for detection in found], axis=0)
        assert masks.max() == 1
        assert (masks != (image[..., 0] > 0)).sum() < 0.15 * masks.sum()


def test_tiles_of_an_image_and_the_whole_are_seen_in_turn(detect: Callable):
    detect(picture(SQUARES), blobs := Blobs(), tile=64, overlap=0.25)
    assert set(blobs.shapes) == {(64, 64), (51, 64)}  # 200 x 160 shrunk to 64 x 51
    assert blobs.shapes.count((51, 64)) == 1


@pytest.mark.parametrize('masks', [False, True])
def test_an_image_that_fits_is_not_cut(masks: bool, detect: Callable):
    image, blobs = picture(SQUARES), Blobs(has_masks=masks)
    assert detect(image, blobs, tile=200) == detect(image, Blobs(has_masks=masks))
    assert len(blobs.shapes) == 1


def test_large_objects_are_found_in_the_whole_image(detect: Callable):
    """A tile sees a part of them, which a real detector may not know."""

    class OnlyWhole(Blobs):
        def __call__(self, pixels: np.ndarray) -> Detections:
            found = super().__call__(pixels)
            inside = (found.boxes[:, 0] > 0) & (found.boxes[:, 2] < pixels.shape[1])
            inside &= (found.boxes[:, 1] > 0) & (found.boxes[:, 3] < pixels.shape[0])
            boxes, scores, labels = (
                values[inside] for values in (found.boxes, found.scores, found.labels)
            )
            return Detections(boxes, scores, labels, None)

    (found,) = detect(picture([(20, 20, 180, 140)]), OnlyWhole(), tile=64)
    np.testing.assert_allclose(found['box'], [20, 20, 180, 140], atol=3)


@pytest.mark.parametrize('masks', [False, True])
def test_nothing_is_found_in_an_empty_image(masks: bool, detect: Callable, tmp_path: Path):
    image = picture([])
    assert detect(image, Blobs(has_masks=masks), tile=64, draw=True) == []
    np.testing.assert_array_equal(cv2.imread(str(tmp_path / 'found/drawn/x.png')), image)


def test_a_tile_is_detected_as_a_cropped_picture_is(checkpoint: Path):
    import ptnt_mm

    predictor = load_predictor(ptnt_mm.get_config(NAME), str(checkpoint), 'cpu', 0.5)
    image = photograph(64, 150)
    windows = Tiling(64, 0.0).windows(150, 64)
    best = [predictor.predict(np.ascontiguousarray(image[:, w[0] : w[2]])) for w in windows]
    highest = max(float(sample.pred_instances.scores.max()) for sample in best)
    predictor.tile(Tiling(64, 0.0))
    found = predictor.predict(image).pred_instances
    torch.testing.assert_close(float(found.scores.max()), highest)
    assert found.bboxes[:, 2].max() > 64  # in pixels of the whole image


def test_masks_of_a_large_image_take_no_memory_of_its_size(detect: Callable):
    squares = [
        (40 * i + 5, 40 * j + 5, 40 * i + 15, 40 * j + 15) for i in range(50) for j in (0, 3)
    ]
    image = picture(squares, 2000, 2000)
    tracemalloc.start()
    try:
        found = detect(image, Blobs(has_masks=True), tile=128)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == len(squares)
    assert peak < 10 * image.nbytes // 3  # with masks of full size, a hundred times


@pytest.mark.parametrize('size', [(1, 1), (5, 3), (20, 30)])
def test_a_patch_is_encoded_as_the_whole_mask(size: tuple[int, int]):
    random = np.random.default_rng(0)
    for _ in range(20):
        width, height = random.integers(0, np.array(size) + 1)
        left, top = random.integers(0, np.array(size) - (width, height) + 1).tolist()
        pixels = random.random((height, width)) < 0.5
        whole = np.zeros(size[::-1], bool)
        whole[top : top + height, left : left + width] = pixels
        assert encode_patch(pixels, left, top, size) == encode_mask(whole)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    export_detector(monkeypatch, tmp_path / 'model.onnx', Blobs(has_masks=True), has_masks=True)
    cv2.imwrite('large.png', picture([*SQUARES, LONG]))
    return tmp_path


def test_the_command(place: Path, capsys: pytest.CaptureFixture):
    flags = '--tile 64 --overlap 0.25 --labels coco --out out'
    assert run_command('infer', ['large.png', 'model.onnx', *flags.split()]) in (None, 0)
    (image,) = json.loads(Path('out/predictions.json').read_text())['images']
    assert len(image['detections']) == 5
    drawn = cv2.imread('out/drawn/large.png')
    assert drawn.shape == (160, 200, 3)
    # The tint of a mask.
    assert (drawn[125, 100] != 255).any()
    assert list(Path('out/labels').rglob('*.json'))
    assert '64 pixels' in capsys.readouterr().out


def test_the_tiles_of_a_config_are_used(checkpoint: Path):
    import ptnt_mm

    config = ptnt_mm.get_config(NAME)
    config.test_cfg = dict(type='TiledTestLoop', tile=64, overlap=0.5)
    assert load_predictor(config, str(checkpoint), 'cpu').tiling == Tiling(64, 0.5)


@pytest.mark.parametrize(
    ('tiling', 'flags', 'are_cut'),
    [([64, 0.2], '', True), ([64, 0.2], '--tile 0', False), (None, '', False)],
)
def test_the_tiles_of_an_exported_file_are_used_unless_images_stay_whole(
    tiling: list | None, flags: str, are_cut: bool, place: Path, monkeypatch: pytest.MonkeyPatch
):
    export_detector(monkeypatch, place / 'model.onnx', blobs := Blobs(), tiling=tiling)
    assert run_command('infer', ['large.png', 'model.onnx', '--out', 'out', *flags.split()]) == 0
    assert {max(shape) for shape in blobs.shapes} == ({64} if are_cut else {200})


@pytest.mark.parametrize(
    'options',
    [dict(tile=16), dict(tile=64, overlap=1), dict(overlap=0.3), dict(tile=0, overlap=0.3)],
    ids=str,
)
def test_tiles_that_cannot_be_are_refused(options: dict, place: Path):
    with pytest.raises(UserError, match=f'`{[*options][-1]}'):
        infer(None, 'model.onnx', 'large.png', 'out', **options)
    assert not Path('out').exists()


def test_models_that_find_no_objects_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch):
    export_detector(monkeypatch, place / 'model.onnx', Blobs(), task='segmentation')
    with pytest.raises(UserError, match='tile=64'):
        infer(None, 'model.onnx', 'large.png', 'out', tile=64)
