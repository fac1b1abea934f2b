"""mmseg's own inference with our configs and checkpoints, in another folder than the checkout."""

from pathlib import Path

import ptnt_mm
from ptnt_mm.utils.versions import provider
from ptnt_mm.workbench.config.zoo import config_path

from .samples import MAP_CLASSES, SEGMENTER, run_elsewhere, write_segmenter

# The engine of the forks looks for `mmseg::` bases in a package of the name mmsegmentation, and
# theirs has another. So mmseg itself cannot read our file there; it accepts the config if
# ptnt_mm has read it.
WAYS = ('by_path', 'by_name') if provider('mmsegmentation') == 'mmsegmentation' else ('by_name',)

# The path comes first: nothing has imported ptnt_mm yet.
CODE = f"""
import numpy
from mmseg.apis import MMSegInferencer, inference_model, init_model

def check(model, labels):
    print(tuple(model.dataset_meta['classes']), labels.shape, labels.max() < 5)

def by_name():
    import ptnt_mm
    return ptnt_mm.get_config({SEGMENTER!r})

def by_path():
    return {str(config_path(SEGMENTER))!r}

image = numpy.zeros((30, 40, 3), numpy.uint8)
for config in ({', '.join(WAYS)},):
    model = init_model(config(), 'iter_1.pth', device='cpu')
    check(model, inference_model(model, image).pred_sem_seg.data[0].numpy())
    inferencer = MMSegInferencer(model=config(), weights='iter_1.pth', device='cpu')
    check(inferencer.model, inferencer(image, out_dir='out')['predictions'])
"""


def test_by_path_and_by_name(tmp_path: Path):
    write_segmenter(tmp_path / 'iter_1.pth', ptnt_mm.get_config(SEGMENTER))
    found = run_elsewhere(CODE, tmp_path).count(f'{MAP_CLASSES} (30, 40) True')
    assert found == 2 * len(WAYS)
    assert {path.parent.name for path in (tmp_path / 'out').rglob('*.*')} == {'pred', 'vis'}
