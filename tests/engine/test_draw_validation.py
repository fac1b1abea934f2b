"""Which images of an evaluation are drawn."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from mmengine.structures import BaseDataElement, InstanceData
from mmengine.visualization import Visualizer
from PIL import Image

from ptnt_mm.registry import HOOKS

HOOK = dict(type='DrawValidationHook')


def test_the_first_images_of_every_evaluation(tmp_path: Path):
    files = [str(tmp_path / f'{i}.png') for i in range(3)]
    for i, file in enumerate(files):
        Image.fromarray(np.full((2, 3, 3), (i, 0, 9), np.uint8)).save(file)
    drawn = []
    visualizer = SimpleNamespace(
        add_datasample=lambda name, image, sample, step: drawn.append(
            (name, image[0, 0].tolist(), Path(sample.img_path).name, step)
        )
    )
    hook = HOOKS.build(dict(HOOK, images=2))
    for step in (5, 9):
        runner = SimpleNamespace(visualizer=visualizer, iter=step)
        hook.before_val_epoch(runner)
        for index, file in enumerate(files):
            hook.after_val_iter(runner, index, outputs=[SimpleNamespace(img_path=file)])
    assert drawn == [
        (f'prediction_{i + 1}.png', [i, 0, 9], f'{i}.png', step) for step in (5, 9) for i in (0, 1)
    ]


def test_classes_are_written_on_a_classifiers_images(tmp_path: Path):
    Image.new('RGB', (300, 300), (200, 100, 0)).save(tmp_path / 'cat.png')
    sample = BaseDataElement(metainfo=dict(img_path=str(tmp_path / 'cat.png')))
    sample.set_data(dict(pred_score=torch.tensor([0.25, 0.75]), gt_label=torch.tensor([0])))
    visualizer = Visualizer(vis_backends=[dict(type='LocalVisBackend')], save_dir=str(tmp_path))
    visualizer.dataset_meta = dict(classes=('cat', 'dog'))
    runner = SimpleNamespace(visualizer=visualizer, iter=7)
    HOOKS.build(HOOK).after_val_iter(runner, 0, outputs=[sample])

    (file,) = tmp_path.rglob('prediction_*')
    assert file.name.startswith('prediction_1.png_7')
    lines = (np.asarray(Image.open(file)) == 0).all(axis=-1)
    assert lines[:, 0].sum() // 15 == 3, 'the truth, and two classes'
    assert not lines[:, 150:].any()


def test_objects_are_drawn_beside_their_truth(tmp_path: Path):
    Image.new('RGB', (300, 200), (90, 90, 90)).save(tmp_path / 'x.png')
    truth = InstanceData(bboxes=torch.tensor([[30.0, 50, 99, 99]]), labels=torch.tensor([0]))
    found = InstanceData(
        bboxes=torch.tensor([[30.0, 50, 99, 99], [150, 120, 199, 190]]),
        labels=torch.tensor([0, 0]),
        scores=torch.tensor([0.8, 0.2]),
    )
    sample = BaseDataElement(metainfo=dict(img_path=str(tmp_path / 'x.png')))
    sample.set_data(dict(gt_instances=truth, pred_instances=found))
    drawn = []
    visualizer = SimpleNamespace(
        add_image=lambda name, image, step: drawn.append(image),
        dataset_meta=dict(classes=('a',), palette=[(0, 200, 0)]),
    )
    runner = SimpleNamespace(visualizer=visualizer, iter=7)
    HOOKS.build(HOOK).after_val_iter(runner, 0, outputs=[sample])
    (picture,) = drawn
    assert picture.shape == (200, 600, 3)
    boxes = [(picture[:, x] == (0, 200, 0)).all(axis=-1).sum() for x in (30, 330)]
    assert min(boxes) > 45, 'the object, and its detection'
    assert (picture[110:] == 90).all(), 'a score below 0.3'


def test_an_image_that_cannot_be_read_is_not_drawn(tmp_path: Path):
    """The first evaluation may come after hours of training."""
    (tmp_path / 'cut.png').write_bytes(b'')
    sample = SimpleNamespace(img_path=str(tmp_path / 'cut.png'))
    HOOKS.build(HOOK).after_val_iter(SimpleNamespace(iter=1), 0, outputs=[sample])
