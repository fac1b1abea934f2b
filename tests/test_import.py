"""Requirements and cost of `import ptnt_mm`."""

import json
import subprocess
import sys


def _run(code: str) -> dict:
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_no_host_and_no_compiled_operator_is_imported():
    code = """
import json, sys
import ptnt_mm, ptnt_mm.models
heavy = 'mmcv mmdet mmseg mmpretrain matplotlib.pyplot pycocotools skimage scipy safetensors'
print(json.dumps([name for name in heavy.split() if name in sys.modules]))
"""
    assert _run(code) == []


def test_importing_costs_little_beyond_torch_and_mmengine():
    # Processor time, and the best of two, because machines are busy.
    code = """
import json, time
import torch, mmengine.model
start = time.process_time()
import ptnt_mm
print(json.dumps(time.process_time() - start))
"""
    assert min(_run(code) for _ in range(2)) < 0.5


def test_each_change_of_other_libraries_has_a_switch():
    code = """
import json, os, sys
os.environ.update({switches})
from mmengine.runner.checkpoint import CheckpointLoader
loader, finders = vars(CheckpointLoader)['load_checkpoint'], list(sys.meta_path)
import ptnt_mm
unchanged = [vars(CheckpointLoader)['load_checkpoint'] is loader, sys.meta_path == finders]
from ptnt_mm.engine.loading import require_safe_loading
require_safe_loading()  # like our commands
print(json.dumps([*unchanged, vars(CheckpointLoader)['load_checkpoint'] is loader]))
"""
    off = dict(PTNT_SAFE_LOADING='0', PTNT_MMCV_OPS='0')
    assert _run(code.format(switches=off)) == [True, True, False]
