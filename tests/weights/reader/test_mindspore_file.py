"""MindSpore's checkpoints, written by protobuf from the published message types."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ptnt_mm.models import PyramidTNT
from ptnt_mm.weights.files import describe_checkpoint
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint

# mindspore/ccsrc/utils/checkpoint.proto: messages, and their fields with number, label and type.
PROTO = dict(
    Checkpoint=dict(value=(1, 'REPEATED', '.Value')),
    Value=dict(tag=(1, 'REQUIRED', 'STRING'), tensor=(2, 'REQUIRED', '.TensorProto')),
    TensorProto=dict(
        dims=(1, 'REPEATED', 'INT64'),
        tensor_type=(2, 'REQUIRED', 'STRING'),
        tensor_content=(3, 'REQUIRED', 'BYTES'),
    ),
)

OF_NORMS = dict(weight='gamma', bias='beta', running_mean='moving_mean')
OF_NORMS |= dict(running_var='moving_variance')


def new_checkpoint():
    """An empty Checkpoint of the published message type."""
    file = descriptor_pb2.FileDescriptorProto(name='checkpoint.proto', syntax='proto2')
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in PROTO.items():
        message = file.message_type.add(name=name)
        for field, (number, label, kind) in fields.items():
            added = message.field.add(name=field, number=number)
            added.label = kinds.Label.Value(f'LABEL_{label}')
            added.type = kinds.Type.Value('TYPE_MESSAGE' if kind[0] == '.' else f'TYPE_{kind}')
            if kind[0] == '.':
                added.type_name = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName('Checkpoint'))()


def add(checkpoint, name: str, content: bytes, dims: Sequence[int], kind: str = 'Float32') -> None:
    value = checkpoint.value.add(tag=name)
    value.tensor.dims.extend(dims)
    value.tensor.tensor_type = kind
    value.tensor.tensor_content = content


def write(path: Path, weights: dict[str, torch.Tensor]) -> Path:
    """Write weights as MindSpore does."""
    checkpoint = new_checkpoint()
    for name, weight in weights.items():
        add(checkpoint, name, weight.numpy().tobytes(), list(weight.shape))
    path.write_bytes(checkpoint.SerializeToString())
    return path


def as_mindspore(model: PyramidTNT) -> dict[str, torch.Tensor]:
    """A backbone's weights by MindSpore's names, inside a detector."""
    norms = {name for name, module in model.named_modules() if 'Norm' in type(module).__name__}
    names = {}
    for key, weight in model.state_dict().items():
        layer, _, last = key.rpartition('.')
        if last != 'num_batches_tracked':
            last = OF_NORMS[last] if layer in norms else last
            names['.'.join(filter(None, ('backbone', layer, last)))] = weight
    return names


def drawn(**options) -> PyramidTNT:
    """A backbone whose weights are all different."""
    model = PyramidTNT('tiny', **options).eval()
    for tensor in model.state_dict().values():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5)
    return model


def test_a_pyramid(tmp_path: Path):
    model, loaded = drawn(), PyramidTNT('tiny').eval()
    file = str(write(tmp_path / 'ptnt.ckpt', as_mindspore(model)))
    load_pretrained(loaded, file, logger='silent')
    for key, weight in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], weight), key
    found = dict(describe_checkpoint(file))
    assert (found['arch'], found['names'], found['pretraining']) == (
        'tiny',
        "MindSpore's",
        '192 px',
    )
    assert found['coverage'].startswith('complete')


def test_the_trunk_of_cfdt(tmp_path: Path):
    """Its own table of sentences, no relative ones, and parts that only the detector has."""
    model = drawn(position='learned', pretrain_img_size=256)
    weights = as_mindspore(model)
    weights['backbone.patch_pos_embed'] = weights.pop('backbone.outer_pos')
    weights['backbone.outer_pos'] = torch.zeros(1, 576, 80)
    weights['backbone.stages.0.blocks.0.outer_norm_det1.gamma'] = torch.ones(80)
    weights['bbox_embed.0.layers.0.weight'] = torch.ones(2, 2)
    file = str(write(tmp_path / 'cfdt.ckpt', weights))
    loaded = PyramidTNT('tiny', position='learned', pretrain_img_size=256)
    report = load_pretrained(loaded, file, logger='silent')
    assert torch.equal(loaded.outer_pos, model.outer_pos)
    assert sorted(report.unused) == [
        'bbox_embed.0.layers.0.weight',
        'stages.0.blocks.0.outer_norm_det1.weight',
    ]
    found = dict(describe_checkpoint(file))
    assert (found['arch'], found['pretraining']) == ("tiny, position='learned'", '256 px')
    assert found['coverage'].startswith('complete')


def test_every_shape_and_type(tmp_path: Path):
    checkpoint = new_checkpoint()
    add(checkpoint, 'step', (7).to_bytes(8, 'little'), [0], 'Int64')
    add(checkpoint, 'half', torch.arange(6).half().numpy().tobytes(), [2, 3], 'Float16')
    add(checkpoint, 'none', b'', [0, 3])
    add(checkpoint, 'new', b'\xc0\x3f\x00\x40', [2], 'BFloat16')
    for part in (b'\x01\x02', b'\x03\x04'):  # as MindSpore writes a large tensor
        add(checkpoint, 'large', part, [4], 'UInt8')
    checksum = b'crc_num' + bytes(10)  # as MindSpore's crc_check=True
    (tmp_path / 'all.ckpt').write_bytes(checkpoint.SerializeToString() + checksum)
    found = read_checkpoint(tmp_path / 'all.ckpt')
    assert found['step'].item() == 7 and found['step'].shape == ()
    assert found['half'].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found['half'].dtype == torch.float16 and found['new'].tolist() == [1.5, 2.0]
    assert found['none'].shape == (0, 3) and found['large'].tolist() == [1, 2, 3, 4]


def one_tensor(dims: tuple[int, ...] = (2, 2), kind: str = 'Float32') -> bytes:
    """A file of 16 zero bytes, as a tensor of this shape and type."""
    checkpoint = new_checkpoint()
    add(checkpoint, 'w', bytes(16), dims, kind)
    return checkpoint.SerializeToString()


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (one_tensor()[:-1], 'is truncated'),
        (one_tensor()[:5], 'is truncated'),
        (b'\x0a' + b'\xff' * 20, 'more than 10 bytes'),
        (b'\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f', 'longer than its message'),
        (b'\x0a\x00', 'not a MindSpore checkpoint'),
        (b'\x0a\x02\x08\x01', 'not a MindSpore checkpoint'),
        (b'\x0a\x02\x0d\x01', 'wire type 5'),
        (b'\x0a\x00' * 60_000, 'more than 50000 fields'),
        (one_tensor((1,) * 40), 'more than 32 fields'),
        (one_tensor((2, 3)), 'has 16 bytes for the shape'),
        (one_tensor((-2, -2)), 'refused'),
        (one_tensor((2**40, 2**40)), 'refused'),
        (one_tensor(kind='String'), 'of an unsupported type'),
    ],
    ids=str,
)
def test_damaged_and_hostile_files(tmp_path: Path, content: bytes, message: str):
    (tmp_path / 'bad.ckpt').write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(tmp_path / 'bad.ckpt')


def test_a_file_of_torch_may_have_the_same_suffix(tmp_path: Path):
    torch.save({'w': torch.ones(2)}, tmp_path / 'lightning.ckpt')
    assert read_checkpoint(tmp_path / 'lightning.ckpt')['w'].tolist() == [1, 1]
