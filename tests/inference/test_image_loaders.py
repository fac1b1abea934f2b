"""Files are loaded as in training, whatever the config's loader says; arrays are checked."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
import torch
from configs.models import build
from mmdet.apis import inference_detector
from mmengine.config import Config
from PIL import Image

import ptnt_mm
from ptnt_mm import api
from ptnt_mm.api import load_predictor
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.inference.image_loaders import LoadedImage
from ptnt_mm.workbench.inference.predictor import Predictor

from .samples import CLASSES, NAME, SEGMENTER, photograph, save, write_segmenter

PIXELS = photograph(60, 90)
GREY = PIXELS[..., 0]


def turned(file: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(PIXELS).save(file, exif=exif)


FILES = {
    'rgb.png': lambda file: Image.fromarray(PIXELS).save(file),
    'turned.jpg': turned,
    'rgb.tif': lambda file: tifffile.imwrite(file, PIXELS, photometric='rgb'),
    'grey_alpha.png': lambda file: Image.fromarray(np.dstack([GREY, GREY.T.reshape(60, 90)])).save(
        file
    ),
    'deep.png': lambda file: Image.fromarray(GREY.astype(np.uint16) * 16).save(file),
    'float.tif': lambda file: tifffile.imwrite(
        file, (PIXELS / 255).astype(np.float32), photometric='rgb'
    ),
}

LOADERS = [
    ('rgb.png', {}),
    ('turned.jpg', {}),
    ('rgb.png', dict(to_float32=True)),
    ('rgb.png', dict(ignore_empty=True)),
    ('rgb.png', dict(backend_args=dict(backend='local'))),
    ('rgb.png', dict(file_client_args=dict(backend='disk'))),
    ('turned.jpg', dict(color_type='unchanged')),
    ('turned.jpg', dict(color_type='color_ignore_orientation')),
    ('turned.jpg', dict(imdecode_backend='pillow')),
    ('grey_alpha.png', dict(imdecode_backend='pillow')),
    ('rgb.tif', dict(imdecode_backend='tifffile')),
    ('float.tif', dict(imdecode_backend='tifffile')),
    ('deep.png', {}),
    ('deep.png', dict(type='LoadImageInRange', value_range=(0, 4095))),
    ('float.tif', dict(type='LoadImageInRange', value_range=(0.0, 1.0))),
]
GREY_LOADERS = [
    ('turned.jpg', dict(color_type='grayscale')),
    ('turned.jpg', dict(color_type='grayscale_ignore_orientation')),
    ('rgb.png', dict(color_type='grayscale', imdecode_backend='pillow')),
    ('deep.png', dict(color_type='unchanged', to_float32=True)),
]


def with_loader(config: Config, loader: dict) -> Config:
    steps = config.test_dataloader.dataset.pipeline
    steps[0] = dict(dict(type='LoadImageFromFile'), **loader)
    return config


def made(name: str, folder: Path) -> Path:
    FILES[name](folder / name)
    return folder / name


def same_as_mmdet(config: Config, checkpoint: Path, file: Path) -> None:
    predictor = load_predictor(config, str(checkpoint), 'cpu', 0.0)
    predictor.model.cfg = config
    theirs = inference_detector(predictor.model, str(file)).pred_instances
    ours = predictor.predict(file).pred_instances
    assert len(ours) > 10
    order = theirs.scores.argsort(descending=True, stable=True)
    torch.testing.assert_close(ours.scores, theirs.scores[order], rtol=0, atol=0)
    torch.testing.assert_close(ours.bboxes, theirs.bboxes[order], rtol=0, atol=0)
    assert predictor.load(file).picture().dtype == np.uint8


@pytest.mark.parametrize(('name', 'loader'), LOADERS, ids=str)
def test_a_detector_gives_mmdets_result(name: str, loader: dict, checkpoint: Path, tmp_path: Path):
    config = with_loader(ptnt_mm.get_config(NAME), loader)
    same_as_mmdet(config, checkpoint, made(name, tmp_path))


@pytest.fixture(scope='module')
def grey_model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Path]:
    """A detector of one channel."""
    config = ptnt_mm.get_config(NAME)
    resnet = dict(type='ResNet', depth=18, in_channels=1, out_indices=(1, 2, 3), norm_eval=False)
    config.model.backbone = resnet
    config.model.neck.in_channels = [128, 256, 512]
    config.model.data_preprocessor.update(mean=[127.5], std=[127.5], bgr_to_rgb=False)
    torch.manual_seed(0)
    model = build(config)
    torch.nn.init.zeros_(model.bbox_head.retina_cls.bias)
    folder = tmp_path_factory.mktemp('grey')
    return config, save(model, config, dict(classes=CLASSES), folder / 'epoch_1.pth')


@pytest.mark.parametrize(('name', 'loader'), GREY_LOADERS, ids=str)
def test_a_detector_of_one_channel(name: str, loader: dict, grey_model: tuple, tmp_path: Path):
    config = with_loader(grey_model[0].copy(), loader)
    same_as_mmdet(config, grey_model[1], made(name, tmp_path))


def test_arrays_become_what_the_loader_returns(grey_model: tuple, checkpoint: Path):
    array = np.ascontiguousarray(PIXELS[..., ::-1])
    grey = with_loader(grey_model[0].copy(), dict(color_type='grayscale'))
    loaded = load_predictor(grey, str(grey_model[1]), 'cpu').load(array)
    np.testing.assert_array_equal(loaded.pixels, cv2.cvtColor(array, cv2.COLOR_BGR2GRAY))
    tiffs = with_loader(ptnt_mm.get_config(NAME), dict(imdecode_backend='tifffile'))
    loaded = load_predictor(tiffs, str(checkpoint), 'cpu').load(array)
    np.testing.assert_array_equal(loaded.pixels, PIXELS)
    np.testing.assert_array_equal(loaded.picture(), array)


def test_a_segmenter_of_tiffs(tmp_path: Path):
    from mmseg.apis import inference_model

    config = with_loader(ptnt_mm.get_config(SEGMENTER), dict(imdecode_backend='tifffile'))
    weights = write_segmenter(tmp_path / 'iter_1.pth', config)
    predictor, file = load_predictor(config, str(weights), 'cpu'), made('rgb.tif', tmp_path)
    config.test_pipeline = config.test_dataloader.dataset.pipeline
    predictor.model.cfg = config
    theirs = inference_model(predictor.model, str(file)).pred_sem_seg.data
    assert torch.equal(predictor.predict(file).pred_sem_seg.data, theirs)
    assert not torch.equal(predictor.predict(PIXELS).pred_sem_seg.data, theirs), 'RGB as BGR'


@pytest.mark.parametrize(
    ('loader', 'named'),
    [
        (dict(imdecode_backend='turbojpeg'), "imdecode_backend='turbojpeg'"),
        (dict(color_type='unchanged', imdecode_backend='tifffile'), 'tifffile'),
    ],
)
def test_a_loader_that_fails_is_named(loader: dict, named: str, checkpoint: Path, tmp_path: Path):
    config = with_loader(ptnt_mm.get_config(NAME), loader)
    file = made('turned.jpg', tmp_path)
    with pytest.raises(UserError, match=f'^{file} cannot be read: .*{named}'):
        load_predictor(config, str(checkpoint), 'cpu').predict(file)


def test_a_loader_of_several_files_is_refused(checkpoint: Path):
    config = with_loader(
        ptnt_mm.get_config(NAME), dict(type='mmdet.LoadMultiChannelImageFromFiles')
    )
    with pytest.raises(UserError, match='LoadMultiChannelImageFromFiles'):
        load_predictor(config, str(checkpoint), 'cpu')


def test_truncated_and_huge_files_are_refused(checkpoint: Path, tmp_path: Path, monkeypatch):
    predictor = load_predictor(ptnt_mm.get_config(NAME), str(checkpoint), 'cpu')
    file = made('turned.jpg', tmp_path)
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 60 * 90 // 3)
    with pytest.raises(UserError, match=f'^{file} cannot be read: .*5400 pixels'):
        predictor.load(file)
    monkeypatch.undo()
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(UserError, match=f'^{file} cannot be read: .*(?i:truncated)'):
        predictor.load(file)


@pytest.fixture(scope='module')
def predictor(checkpoint: Path) -> Predictor:
    return load_predictor(ptnt_mm.get_config(NAME), str(checkpoint), 'cpu')


@pytest.mark.parametrize(
    ('image', 'named'),
    [
        ((PIXELS / 255).astype(np.float32), 'float32 (60, 90, 3)'),
        (PIXELS.astype(np.float64), 'float64 (60, 90, 3)'),
        (PIXELS.astype(np.uint16) * 257, 'uint16 (60, 90, 3)'),
        (PIXELS.astype(np.int64), 'int64 (60, 90, 3)'),
        (PIXELS > 99, 'bool (60, 90, 3)'),
        (GREY, 'uint8 (60, 90)'),
        (GREY[..., None], 'uint8 (60, 90, 1)'),
        (np.dstack([PIXELS, GREY]), 'uint8 (60, 90, 4)'),
        (PIXELS.transpose(2, 0, 1), 'uint8 (3, 60, 90)'),
        (PIXELS[None], 'uint8 (1, 60, 90, 3)'),
        (PIXELS[:0], 'uint8 (0, 90, 3)'),
        (torch.from_numpy(PIXELS), 'Tensor of torch.uint8 (60, 90, 3)'),
        (Image.fromarray(PIXELS), 'Image'),
        (PIXELS.tolist(), 'list'),
        (None, 'NoneType'),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
@pytest.mark.parametrize('method', ['predict', 'prepare', 'run'])
def test_other_arrays_are_refused(predictor: Predictor, method: str, image: object, named: str):
    with pytest.raises(UserError) as raised:
        getattr(predictor, method)(image)
    assert named in str(raised.value) and '(H, W, 3) uint8, BGR' in str(raised.value)


def test_arrays_for_whole_commands_are_refused(tmp_path: Path):
    config = ptnt_mm.get_config(NAME)
    with pytest.raises(UserError, match=r'uint8 \(60, 90, 3\)'):
        api.infer(config, 'x.pth', PIXELS, tmp_path / 'out')
    with pytest.raises(UserError, match=r'uint8 \(60, 90, 3\)'):
        api.visualize([(config, None)], [PIXELS], tmp_path / 'out')


@pytest.mark.parametrize(
    'pixels',
    [GREY, GREY[..., None], GREY.astype(np.float32), GREY.astype(np.uint16) * 16, GREY / 255],
)
def test_a_picture_of_any_loaded_pixels(pixels: np.ndarray):
    picture = LoadedImage(dict(img=pixels)).picture()
    np.testing.assert_allclose(picture, np.dstack([GREY] * 3), atol=1)
