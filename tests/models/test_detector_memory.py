"""Memory of the complete published detector on a CPU, in a separate process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

STEP = """
import resource, torch, ptnt_mm
from mmdet.testing import demo_mm_inputs
from mmengine.registry import MODELS, init_default_scope

config = ptnt_mm.get_config('retinanet_ptnt_s_1x')
init_default_scope('mmdet')
model = MODELS.build(config.model).train()
data = model.data_preprocessor(demo_mm_inputs(1, [[3, 608, 1024]]), training=True)
losses = model(**data, mode='loss')
total, _ = model.parse_losses(losses)
total.backward()
assert torch.isfinite(total)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.timeout(300)
def test_a_training_step_stays_below_3_gib():
    """Resident set at the worst moment, weights and libraries included.

    2.7 GiB were seen, 3.4 with the published attention. At 800 x 1344 pixels, which take twice the
    time, it is 3.6 GiB.
    """
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', STEP], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    kilobytes = int(done.stdout.split()[-1])
    assert 0.5 * 2**20 < kilobytes < 3 * 2**20
