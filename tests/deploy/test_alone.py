"""The installation that only runs exported files has NumPy, Pillow and ONNX Runtime."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from repository import ROOT

from ptnt_mm.deploy.export_info import with_export_info

from .test_export_info import ABOUT

ALONE = f"""
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

INSTALLED = {{'PIL', 'flatbuffers', 'google', 'numpy', 'onnxruntime', 'ptnt_mm'}}

class Alone:
    def find_spec(name, path=None, target=None):
        if name.partition('.')[0] in INSTALLED | sys.stdlib_module_names:
            return PathFinder.find_spec(name, path, target)

# An editable installation has a finder of its own, so all of them are replaced.
sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Alone]
sys.path.insert(0, {str(ROOT)!r})
import ptnt_mm.deploy
"""


def run_alone(code: str, folder: Path) -> subprocess.CompletedProcess:
    """Run Python in a folder, where other packages cannot be imported."""
    command = [sys.executable, '-W', 'ignore', '-c', f'{ALONE}\n{code}']
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def write_segmenter(file: Path) -> None:
    """An exported file whose classes are the values of the red channel."""
    import onnx
    from onnx import TensorProto, helper

    red = helper.make_tensor('red', TensorProto.INT64, [], [0])
    node = helper.make_node('Gather', ['images', 'red'], ['labels'], axis=3)
    images = helper.make_tensor_value_info('images', TensorProto.UINT8, ['b', 'h', 'w', 3])
    sizes = helper.make_tensor_value_info('sizes', TensorProto.INT64, ['b', 2])
    labels = helper.make_tensor_value_info('labels', TensorProto.UINT8, ['b', 'h', 'w'])
    graph = helper.make_graph([node], 'red', [images, sizes], [labels], [red])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)], ir_version=10)
    onnx.checker.check_model(model)
    about = replace(ABOUT, task='segmentation', scale=None, thresholds={})
    file.write_bytes(with_export_info(model.SerializeToString(), about, '.onnx'))


def test_a_file_runs_without_other_packages(tmp_path: Path):
    write_segmenter(tmp_path / 'model.onnx')
    image = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    Image.fromarray(image).save(tmp_path / 'photo.png')
    code = "print(ptnt_mm.deploy.Deployed('model.onnx')('photo.png').tolist())"
    done = run_alone(code, tmp_path)
    assert (done.returncode, done.stdout) == (0, f'{image[..., 0].tolist()}\n'), done.stderr


@pytest.mark.parametrize('command', ['infer', 'doctor', 'demo'])
def test_a_command_names_the_missing_package_in_one_line(tmp_path: Path, command: str):
    code = f"sys.argv = ['ptnt', {command!r}]\nfrom ptnt_mm.workbench.cli.main import main\nmain()"
    done = run_alone(code, tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and 'rich' in done.stderr, done.stderr
