"""Count a model's parameters and multiply-adds, part by part.

MMEngine's counter (a fork of fvcore's, which most papers in the field use) traces one forward pass
of one image. It cannot count torch's fused attention, so this module adds it.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import torch
from mmengine.analysis import FlopAnalyzer
from mmengine.model import BaseModel
from mmengine.structures import BaseDataElement, InstanceData
from torch import nn

from ptnt_mm.models.backbone import find_trunk
from ptnt_mm.models.classifiers import PlainClassifier
from ptnt_mm.utils.tables import new_table, to_text

ATTENTION_PRODUCTS = ('scaled_dot_product_attention', 'matmul', 'bmm', 'einsum')
"""Operations that multiply activations with activations: queries with keys, weights with values."""

# Operations that the model runs itself, outside its submodules. Listed last.
_OTHER = 'other'


@dataclass(frozen=True)
class Part:
    """Parameters and multiply-adds of a part of a model, or of all of it."""

    name: str
    parameters: int
    operations: Counter[str]
    """Multiply-adds by operation name."""

    @property
    def attention_products(self) -> int:
        """Multiply-adds of :data:`ATTENTION_PRODUCTS`."""
        return sum(self.operations[name] for name in ATTENTION_PRODUCTS)

    @property
    def multiply_adds(self) -> int:
        """All multiply-adds, attention products included."""
        return self.operations.total()

    @property
    def without_attention_products(self) -> int:
        """Multiply-adds as counted by papers that omit attention products."""
        return self.multiply_adds - self.attention_products

    def to_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            'name': self.name,
            'parameters': self.parameters,
            'multiply_adds': self.multiply_adds,
            'multiply_adds_without_attention_products': self.without_attention_products,
            'operations': dict(self.operations),
        }


@dataclass(frozen=True)
class Complexity:
    """The result of :func:`measure_complexity`."""

    shape: tuple[int, int]
    """Height and width of the image in pixels."""

    parts: tuple[Part, ...]

    not_counted: tuple[str, ...]
    """Operations that ran but are not supported by the counter."""

    @property
    def total(self) -> Part:
        """The sum of all parts."""
        operations = sum((part.operations for part in self.parts), Counter())
        return Part('total', sum(part.parameters for part in self.parts), operations)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            'shape': list(self.shape),
            'parts': [part.to_dict() for part in self.parts],
            'total': self.total.to_dict(),
            'not_counted': list(self.not_counted),
        }

    def to_table(self) -> str:
        """The numbers as a Markdown table."""
        table = new_table('part', 'parameters', 'multiply-adds', 'without attention products')
        for part in (*self.parts, self.total):
            counts = (part.multiply_adds, part.without_attention_products)
            counted = (f'{count / 1e9:.2f} G' for count in counts)
            table.add_row(part.name, f'{part.parameters / 1e6:.2f} M', *counted)
        return to_text(table)


def measure_complexity(model: nn.Module, shape: tuple[int, int]) -> Complexity:
    """Count the operations of one forward pass of one image, in evaluation mode.

    Args:
        model: A module that takes images (1, 3, H, W), or a model of a host.
        shape: Height and width of the image in pixels.

    Raises:
        ValueError: if the image is too small for the model.
    """
    like = next(model.parameters(), torch.zeros(()))
    image = torch.zeros(1, 3, *shape, dtype=like.dtype, device=like.device)
    counter = FlopAnalyzer(model, (image,))
    counter.set_op_handle('aten::scaled_dot_product_attention', _count_fused_attention)
    counter.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    with _evaluating(model, shape), torch.no_grad():
        operations = _own(counter.by_module_and_operator())
    for name, module in model.named_modules():
        # PlainClassifier runs its backbone without calling it.
        if hasattr(module, 'pretrained_tables') or isinstance(module, PlainClassifier):
            # Resizing its tables to the image's grid. Published counts omit it.
            operations[name].pop('matmul', None)
    not_counted = sorted(name.rpartition('::')[2] for name in counter.unsupported_ops())
    return Complexity(shape, tuple(_parts(model, operations)), tuple(not_counted))


@contextmanager
def _evaluating(model: nn.Module, shape: tuple[int, int]) -> Iterator[None]:
    """Put a model in evaluation mode and make its ``forward`` accept only an image."""
    was_training = {module: module.training for module in model.modules()}
    model.eval()
    # mmseg gives its MaskFormer and Mask2Former no samples, which their forward needs.
    head = getattr(model, 'decode_head', nn.Identity())
    if isinstance(model, BaseModel):  # detectors with queries or proposals need the image size
        sizes = dict.fromkeys(('img_shape', 'ori_shape', 'pad_shape', 'batch_input_shape'), shape)
        sample = BaseDataElement(metainfo=dict(**sizes, scale_factor=(1.0, 1.0)))
        # Sparse R-CNN computes its losses in every mode. Without objects they cost nothing.
        labels = torch.zeros(0, dtype=torch.long)
        sample.gt_instances = InstanceData(bboxes=torch.zeros(0, 4), labels=labels)
        model.forward = partial(model.forward, data_samples=[sample], mode='tensor')
        if 'batch_data_samples' in signature(head.forward).parameters:
            head.forward = partial(head.forward, batch_data_samples=[sample])
    try:
        yield
    finally:
        vars(model).pop('forward', None)
        vars(head).pop('forward', None)
        for module, mode in was_training.items():
            module.training = mode


def _count_fused_attention(inputs: list[Any], outputs: list[Any]) -> int:
    """Multiply-adds of q k^T and of the product with v, for q (..., N, d), k and v (..., M, d)."""
    query, key, value = (tensor.type().sizes() for tensor in inputs[:3])
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _own(counts: Mapping[str, Counter[str]]) -> dict[str, Counter[str]]:
    """Subtract the counts of submodules from counts that include them."""
    # MMEngine counts the operations of an einsum as floats.
    own = {
        name: Counter({op: int(number) for op, number in of.items()}) for name, of in counts.items()
    }
    for name, operations in counts.items():
        if name:
            own[name.rpartition('.')[0]].subtract(operations)
    return own


def _parts(model: nn.Module, operations: Mapping[str, Counter[str]]) -> Iterator[Part]:
    """Group parameters and operations by part; skip empty parts."""
    trunk = find_trunk(model)
    path = next((name for name, module in model.named_modules() if module is trunk), '')
    patterns = trunk.parts if trunk else ()
    parameters: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        parameters[_part_of(name, path, patterns)] += parameter.numel()
    grouped: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, counts in operations.items():
        grouped[_part_of(name, path, patterns)] += counts
    for name in sorted({**grouped, **parameters}, key=lambda name: name == _OTHER):
        if parameters[name] or grouped[name]:
            yield Part(name, parameters[name], grouped[name])


def _part_of(name: str, path: str, patterns: tuple[tuple[str, str], ...]) -> str:
    """The part that a parameter or module belongs to; ``path`` is the name of the backbone."""
    prefix = f'{path}.' if path else ''
    if f'{name}.'.startswith(prefix):
        for pattern, label in patterns:
            if match := re.match(pattern, name.removeprefix(prefix)):
                return label.format(*(int(index) + 1 for index in match.groups()))
    return name.partition('.')[0] or _OTHER
