"""mmdet's own inference with our configs and checkpoints, in another folder than the checkout."""

from pathlib import Path

from ptnt_mm.workbench.config.zoo import config_path

from .samples import CLASSES, NAME, run_elsewhere

# The path comes first: nothing has imported ptnt_mm yet.
CODE = f"""
import numpy
from mmdet.apis import DetInferencer, inference_detector, init_detector

def check(model, scores):
    print(model.dataset_meta['classes'], len(scores) > 0)

def by_name():
    import ptnt_mm
    return ptnt_mm.get_config({NAME!r})

def by_path():
    return {str(config_path(NAME))!r}

image = numpy.zeros((30, 40, 3), numpy.uint8)
for config in (by_path, by_name):
    model = init_detector(config(), 'epoch_1.pth', device='cpu')
    check(model, inference_detector(model, image).pred_instances.scores)
    inferencer = DetInferencer(model=config(), weights='epoch_1.pth', device='cpu')
    check(inferencer.model, inferencer(image)['predictions'][0]['scores'])
"""


def test_by_path_and_by_name(checkpoint: Path):
    assert run_elsewhere(CODE, checkpoint.parent).count(f'{CLASSES} True') == 4
