"""Requirements and cost of `import ptnt_mm`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import attacks
import pytest
from forked import Forked
from repository import ROOT, environment


def _run(code: str) -> Any:
    """Run code in a new process; return the value that its last line prints."""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _run_forked(code: str, folder: Path) -> Any:
    """The same in a process that has imported PyTorch and MMEngine, but nothing of ptnt_mm."""
    script, output = folder / 'probe.py', folder / 'output.txt'
    script.write_text(code)
    assert Forked([script], folder, output).wait() == 0, output.read_text()
    return json.loads(output.read_text().splitlines()[-1])


def test_it_costs_little_and_imports_no_host_and_no_compiled_operator():
    code = """
import builtins, json, sys, time
start = time.process_time()
import torch, mmengine.model, mmengine.runner
libraries = time.process_time() - start
plain, direct = builtins.__import__, set()
def watched(name, globals=None, *rest):
    if (globals or {}).get('__name__', '').startswith('ptnt_mm'):
        direct.add(name.partition('.')[0])
    return plain(name, globals, *rest)
builtins.__import__ = watched
start = time.process_time()
import ptnt_mm
share = (time.process_time() - start) / libraries
ours = [name for name in sys.modules if name.partition('.')[0] == 'ptnt_mm']
heavy = 'mmcv mmdet mmseg mmpretrain matplotlib.pyplot pycocotools skimage scipy safetensors'
heavy += ' timm huggingface_hub'
loaded = [name for name in heavy.split() if name in sys.modules]
print(json.dumps([share, ours, loaded, sorted(direct)]))
"""
    share, ours, loaded, direct = _run(code)
    assert loaded == [] and not {'cv2', 'PIL', 'fcntl'} & set(direct)
    rooms = [name.split('.')[1:2] for name in ours]
    assert not WORKBENCH & {room for room, *_ in filter(None, rooms)}
    # Each network and each hook is a file of its own.
    assert len([room for room in rooms if room not in (['models'], ['hooks'])]) < 33
    # Processor time, and a second attempt, because machines are busy.
    assert share < 0.25 or _run(code)[0] < 0.25


WORKBENCH = {'api', 'deploy', 'workbench'}
"""The rooms that the plugin does not import."""


def test_other_libraries_stay_as_they_are(tmp_path: Path):
    """Functions and classes of all their modules, with the attributes of the classes."""
    code = """
import json, logging, os, sys, types, warnings
import mmcv, mmdet.apis, mmengine.hooks, mmengine.runner, torch
from mmengine.runner.checkpoint import CheckpointLoader

def parts():
    for name, module in list(sys.modules.items()):
        if name.split('.')[0] not in ('mmcv', 'mmdet', 'mmengine', 'torch'):
            continue
        for key, value in list(vars(module).items()):
            if callable(value):
                yield f'{name}.{key}', value
            if isinstance(value, type) and value.__module__ == name:
                for part, own in vars(value).items():
                    if callable(own) or isinstance(own, (classmethod, property, staticmethod)):
                        yield f'{name}.{key}.{part}', own
    yield from CheckpointLoader._schemes.items()
    yield from os.environ.items()
    yield from (('warnings', warnings.showwarning), ('log', tuple(logging.root.handlers)))

before, finders = dict(parts()), list(sys.meta_path)
import ptnt_mm
after = dict(parts())
changed = [name for name, value in before.items() if after.get(name) != value]
print(json.dumps([len(before), changed, [f.__module__ for f in sys.meta_path if f not in finders]]))
"""
    number, changed, finders = _run_forked(code, tmp_path)
    assert number > 10_000 and changed == []
    assert sorted(finders) == ['ptnt_mm.mmcv_ops.finder', 'ptnt_mm.utils.multimodal']


def test_each_finder_has_a_switch(tmp_path: Path):
    code = """
import json, os, sys
os.environ.update(PTNT_MMCV_OPS='0', PTNT_OPTIONAL_MULTIMODAL='0')
finders = list(sys.meta_path)
import ptnt_mm
print(json.dumps(sys.meta_path == finders))
"""
    assert _run_forked(code, tmp_path) is True


CLASSES = """
class PreTrainedModel:
    from_pretrained = from_config = None

def __getattr__(name):
    return type(name, (PreTrainedModel,), {})
"""
"""A transformers with every class, and without the modules of the language models."""

NO_LANGUAGE_MODELS = """
import sys
from types import ModuleType
for part in 'blip blip2 chinese_clip clip flamingo llava minigpt4 ofa otter ram'.split():
    name = f'mmpretrain.models.multimodal.{part}'
    sys.modules[name] = ModuleType(name)
"""


@pytest.mark.parametrize(
    ('package', 'before', 'expected'),
    [
        (CLASSES, '', False),  # as of transformers 5: `TypeError: NoneType takes no arguments`
        ("raise ImportError('huggingface-hub<1.0 is required')", '', False),
        (CLASSES, NO_LANGUAGE_MODELS, True),
    ],
    ids=['classes are missing', 'cannot be imported', 'everything is found'],
)
def test_mmdet_beside_transformers(tmp_path: Path, package: str, before: str, expected: bool):
    """Without the multimodal models of mmpretrain, but only if they cannot be imported."""
    pytest.importorskip('mmpretrain')
    files = {
        'transformers-5.0.0.dist-info/METADATA': 'Name: transformers\nVersion: 5.0.0\n',
        'transformers/__init__.py': package,
        'transformers/models/auto/auto_factory.py': (
            'from transformers import PreTrainedModel as _BaseAutoModelClass'
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    code = f"""{before}
import json
import ptnt_mm
import mmdet.models
from mmdet.models.reid import base_reid
from mmpretrain.registry import MODELS
from mmpretrain.utils.dependency import WITH_MULTIMODAL
found = base_reid.mmpretrain and MODELS.get('VisionTransformer')
placeholder = MODELS.get('BlipCaption')
print(json.dumps([WITH_MULTIMODAL, bool(found), placeholder is None]))
"""
    assert _run_forked(code, tmp_path) == [expected, True, expected]


@pytest.mark.parametrize(
    ('module', 'rooms'),
    [
        ('ptnt_mm', r'ptnt_mm\.(?:hooks|models\.optimizer)'),
        # Configs name classes of mmdet_metrics by their path.
        ('ptnt_mm.workbench', r'ptnt_mm\.workbench\.(?:engine(?!\.mmdet_metrics)|data)'),
    ],
)
def test_importing_registers_every_class_of_the_reference(tmp_path: Path, module: str, rooms: str):
    """A config that names one must also build with mmdet's own train.py."""
    code = f"""
import json
import {module}
from ptnt_mm import registry
registries = [getattr(registry, name) for name in registry.__all__]
print(json.dumps([name for registry in registries for name in registry.module_dict]))
"""
    page = (ROOT / 'docs' / 'config_reference.md').read_text()
    listed = re.findall(rf'autoclass:: {rooms}[\w.]*\.(\w+)', page)
    assert len(listed) > 5 and set(listed) <= set(_run_forked(code, tmp_path))


DOORS = {
    'init_cfg': """
from mmengine.registry import MODELS
init = dict(type='Pretrained', checkpoint=path)
MODELS.build(dict(type='PyramidTNT', arch='tiny', init_cfg=init)).init_weights()
""",
    'load_from': """
from mmengine.runner import Runner
from toy import toy_config
hooks = [dict(type='CheckpointGuardHook')]
Runner.from_cfg(toy_config('run', custom_hooks=hooks, load_from=path)).train()
""",
    'resume': """
from mmengine.runner import Runner
from toy import toy_config
hooks = [dict(type='CheckpointGuardHook')]
Runner.from_cfg(toy_config('run', custom_hooks=hooks, load_from=path, resume=True)).train()
""",
    'make_loading_safe': """
from mmengine.runner.checkpoint import CheckpointLoader
ptnt_mm.make_loading_safe()
CheckpointLoader.load_checkpoint(path)
""",
    'api': """
from mmengine.config import Config
from ptnt_mm.api import load_predictor
backbone = dict(type='PyramidTNT', arch='tiny', out_norms=True)
model = dict(type='PlainClassifier', backbone=backbone)
steps = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
loader = dict(dataset=dict(type='CustomDataset', pipeline=steps))
settings = dict(model=model, test_dataloader=loader, default_scope='mmpretrain')
load_predictor(Config(settings), path)
""",
    'custom_imports': """
from mmengine.config import Config
from mmengine.runner.checkpoint import CheckpointLoader
Config.fromfile('own.py')
CheckpointLoader.load_checkpoint(path)
""",
    'timm': """
import ptnt_mm.timm, timm
timm.create_model('pyramid_tnt_ti', pretrained=True, pretrained_cfg_overlay=dict(file=path))
""",
}
"""How each way into the package reads the file ``path``."""


@pytest.mark.parametrize('door', DOORS)
def test_no_door_runs_what_is_in_a_file(tmp_path: Path, door: str):
    """In a process where nothing but this door could have made MMEngine's loading safe."""
    canary = tmp_path / 'canary'
    weights = dict(state_dict=dict(w=attacks.os_system(canary)))
    path = attacks.write_zip(tmp_path / 'hostile.pth', weights)
    own = "custom_imports = dict(imports=['ptnt_mm.weights.safe_loading'])"
    (tmp_path / 'own.py').write_text(own)
    code = f"""
import json, sys
import ptnt_mm
sys.path.append({str(ROOT / 'tests')!r})
path, refused = {str(path)!r}, None
try:
    exec({DOORS[door]!r})
except Exception as error:
    refused = f'{{type(error).__name__}}: {{error}}'
print(json.dumps(refused))
"""
    refused = _run_forked(code, tmp_path)
    # timm reads it with torch.
    expected = 'weights_only' if door == 'timm' else "asks for 'os.system'"
    assert expected in refused and not canary.exists()


def test_our_own_functions_load_safely_in_any_case(tmp_path: Path):
    code = """
import json
from mmengine.config import Config
from mmengine.runner.checkpoint import CheckpointLoader
loader = vars(CheckpointLoader)['load_checkpoint']
from ptnt_mm.workbench.config.build import build_model
build_model(Config(dict(model=dict(type='PyramidTNT', arch='tiny'))))
print(json.dumps(vars(CheckpointLoader)['load_checkpoint'] is loader))
"""
    assert _run_forked(code, tmp_path) is False


def test_it_needs_no_module_that_windows_lacks(tmp_path: Path):
    code = """
import json, sys
from pathlib import Path
from mmengine.registry import MODELS
sys.modules.update(dict.fromkeys('fcntl grp posix pwd resource syslog termios'.split()))
import ptnt_mm
from ptnt_mm.workbench.engine.work_dir import lock_work_dir
with lock_work_dir(Path()):
    print(json.dumps('PyramidTNT' in MODELS.module_dict))
"""
    assert _run_forked(code, tmp_path)


def test_a_main_program_may_register_classes_later(tmp_path: Path):
    """In its own process; a worker that is started anew registers on import."""
    script = tmp_path / 'program.py'
    script.write_text("""
import multiprocessing, sys
if __name__ == '__main__':
    PTNT_MM_REGISTERS_LATER = True

def registered(_=None):
    import ptnt_mm
    from mmengine.registry import HOOKS
    return 'StopAtNaNHook' in HOOKS.module_dict

if __name__ == '__main__':
    from ptnt_mm import *
    assert 'torch' not in sys.modules and not registered()
    for method in ('spawn', 'fork'):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(registered, [0]) == [True]
        register()
    from ptnt_mm import get_config
    assert registered() and get_config('demo_gfl_ptnt_ti')
""")
    subprocess.run([sys.executable, script], check=True)


@pytest.mark.parametrize('start', ['tools/ptnt train', '-m ptnt_mm train', 'tools/train.py'])
@pytest.mark.parametrize(
    ('chosen', 'seen'),
    [
        ({}, '1000'),
        (dict(GOMP_SPINCOUNT='7'), '7'),
        (dict(OMP_WAIT_POLICY='active'), 'None'),
    ],
)
def test_commands_let_idle_threads_sleep(tmp_path: Path, start: str, chosen: dict, seen: str):
    """OpenMP reads the variables when torch is imported, here by a stand-in."""
    stand_in = "import os\nprint(os.environ.get('GOMP_SPINCOUNT'), flush=True)\nos._exit(0)\n"
    (tmp_path / 'torch.py').write_text(stand_in)
    paths = os.pathsep.join(map(str, (tmp_path, ROOT)))
    env = {name: value for name, value in environment().items() if 'OMP_' not in name}
    command = [sys.executable, *start.split(), 'demo_retinanet_ptnt_ti']
    env |= {'PYTHONPATH': paths} | chosen
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.stdout.strip() == seen, done.stderr
