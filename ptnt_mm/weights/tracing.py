"""Find out which weights a network takes from a file, whatever its own code does.

Many networks of the hosts load files by themselves. They rename, cut and resize weights, and pass
over what does not fit in silence. So their code is run on a copy of the network, with a file of
labels: each of its tensors is filled with a different number, which is then looked for in the
network.
"""

import copy
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ptnt_mm.utils.text import printable
from ptnt_mm.weights.files import as_safetensors, saved
from ptnt_mm.weights.fit import OTHER_FILE, LoadReport, may_lack, misfit, only_tensors
from ptnt_mm.weights.names import Weights
from ptnt_mm.weights.pretrained import load_pretrained, pretrained_init
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import local_file, read_checkpoint

_FIRST = 4096  # label of the first tensor: larger than any weight, and exact in float32

_BESIDE_BACKBONES = re.compile(r'head|fc\b|classifier|logit|norm|decoder|token|neck|num_batches')
"""Parts that a file may have and a backbone has not."""


def try_pretrained(part: nn.Module) -> LoadReport:
    """Load the weights that a part of a model names, as the start of a run does, without a log.

    A file that does not fit is an error, also for networks that load it by themselves.

    Args:
        part: One of :func:`~ptnt_mm.weights.pretrained.pretrained_parts`. Only one with a
            ``pretrained_part`` is changed.

    Raises:
        CheckpointError: As :func:`~ptnt_mm.weights.pretrained.load_pretrained` and :func:`trace`;
            NaN and infinity are found only in one with a ``pretrained_part``.
    """
    init = pretrained_init(part.init_cfg)
    if (network := getattr(part, 'pretrained_part', None)) is not None:
        return load_pretrained(network, init['checkpoint'], init.get('prefix'), logger='silent')
    return trace(part, init['checkpoint'])


def trace(network: nn.Module, file: str) -> LoadReport:
    """Report which weights a network's ``init_weights`` takes from a file.

    The network's code may print, and draw random numbers. Of a whole model, only the backbone must
    be in the file.

    Args:
        network: With a Pretrained dict in its ``init_cfg``; it is not changed.
        file: The file or the address that the dict names.

    Raises:
        CheckpointError: if the file cannot be read or loaded, if nothing in it is used, or if it
            belongs to another network, so that weights would start at random.
    """
    labels = _Labels()
    content = labels.put(read_checkpoint(file, 'meta'))
    own = only_tensors(network.state_dict())
    try:
        initialised = _initialised(network, content, local_file(file).name)
    except CheckpointError:
        raise
    except Exception as error:  # it is anyone's code
        # torch writes a line for each weight.
        lines = [line.strip() for line in str(error).splitlines()]
        reason = printable(' '.join(lines[:2]), 300).rstrip(' .')
        reasons = f', whose init_weights fails with {type(error).__name__}: {reason}'
        raise misfit(file, network, reasons, labels.weights(), own, OTHER_FILE) from error
    found = only_tensors(initialised.state_dict())
    needed = {key: w for key, w in found.items() if key.startswith('backbone.')} or found
    report = _report(needed, labels, may_lack(network))
    if problems := report.problems():
        reasons = f': it {"; it ".join(problems)}'
        raise misfit(file, network, reasons, labels.weights(), own, OTHER_FILE)
    return report


class _Labels:
    """The real numbers of a file, and their labels."""

    def __init__(self):
        self.tensors: list[tuple[int, str, Tensor]] = []  # the number of its dict, its key, itself
        self._dicts = 0

    def put(self, entry: Mapping) -> dict:
        """A copy of a file's content with labels in place of real numbers, and without text."""
        number, self._dicts = self._dicts, self._dicts + 1
        labelled: dict[str, Any] = {}
        for key, value in entry.items():
            if isinstance(value, Mapping):
                labelled[key] = self.put(value)
            elif isinstance(value, Tensor) and value.is_floating_point():
                labelled[key] = torch.full(value.shape, float(_FIRST + len(self.tensors)))
                self.tensors.append((number, str(key), value))
            elif isinstance(value, Tensor):
                labelled[key] = torch.zeros(value.shape, dtype=value.dtype)
        return labelled

    def found_in(self, weight: Tensor) -> set[int] | None:
        """Indices of the tensors that a weight was made from; None if it is not from the file.

        Resized, cut and joined tensors keep their labels, sums and products do not.
        """
        if not weight.numel() or weight.abs().max() < _FIRST / 2:
            return None
        found = (weight.unique().round() - _FIRST).tolist()
        return {int(label) for label in found if 0 <= label < len(self.tensors)}

    def weights(self, used: Collection[int] = ()) -> Weights:
        """The tensors of the dicts that were used by key; of the largest one if none was."""
        sizes = Counter(number for number, _, _ in self.tensors)
        dicts = {self.tensors[index][0] for index in used} or dict(sizes.most_common(1))
        return {key: tensor for number, key, tensor in self.tensors if number in dicts}


def _initialised(network: nn.Module, content: dict, name: str) -> nn.Module:
    """A copy of a network after its ``init_weights`` has read a file with this content."""
    network = copy.deepcopy(network)
    inits = network.init_cfg if isinstance(network.init_cfg, list) else [network.init_cfg]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        is_safetensors = file.suffix == '.safetensors'
        file.write_bytes(as_safetensors(content) if is_safetensors else saved(content))
        for init in inits:
            if 'checkpoint' in init:
                init['checkpoint'] = str(file)
        network.init_weights()
    return network


def _report(own: Weights, labels: _Labels, optional: Collection[str]) -> LoadReport:
    """The outcome for each weight of a network after it has read a file of labels.

    A weight that is not in the file may have the same value everywhere, as norms and layers that
    are added to a trained network start.
    """
    report, used, drawn = LoadReport(), set(), []
    for key, weight in own.items():
        if not weight.is_floating_point():
            continue
        if (found := labels.found_in(weight)) is not None:
            report.loaded.append(key)
            used |= found
        elif key in optional or _is_constant(key, weight):
            report.new.append(key)
        else:
            drawn.append(key)
    weights = labels.weights(used)
    taken = {labels.tensors[index][1] for index in used}
    report.unused = [key for key in weights if key not in taken]
    if report.loaded and _are_added(drawn, report, own):
        report.drawn = drawn
        return report
    for key in drawn or report.new:
        if key in weights and weights[key].shape != own[key].shape:
            report.mismatched[key] = tuple(weights[key].shape), tuple(own[key].shape)
        else:
            report.missing.append(key)
    return report


def _are_added(drawn: Sequence[str], report: LoadReport, own: Weights) -> bool:
    """Whether weights that start at random belong to parts that were added to the file's network.

    They do not if the file has the same part of another block or the weight of a statistic, if it
    has other parts in their place, or if it has less than half of the network.
    """
    if not drawn:
        return True
    kinds = set(map(_without_numbers, report.loaded))
    gaps = [key for key in drawn if {_without_numbers(key), _without_numbers(_scale(key))} & kinds]
    others = [key for key in report.unused if not _BESIDE_BACKBONES.search(key)]
    new, loaded = (sum(own[key].numel() for key in keys) for keys in (drawn, report.loaded))
    return not gaps and not others and new < loaded


def _is_constant(key: str, weight: Tensor) -> bool:
    """Whether a weight has one value, and is not a statistic of BatchNorm."""
    return _scale(key) == key and (not weight.numel() or bool(weight.min() == weight.max()))


def _scale(key: str) -> str:
    """The weight of BatchNorm that a statistic belongs to; any other key unchanged."""
    return re.sub(r'running_(mean|var)$', 'weight', key)


def _without_numbers(key: str) -> str:
    """The name of a weight in every block: 'layer1.0.conv1' -> 'layer#.#.conv#'."""
    return re.sub(r'\d+', '#', key)
