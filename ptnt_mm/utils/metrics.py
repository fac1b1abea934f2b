"""Names and values of evaluation metrics as people read them."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Real

_NAMES = {
    'bbox_mAP': 'AP',
    'segm_mAP': 'mask AP',
    'PQ': 'PQ',
    'PQ_th': 'PQ things',
    'PQ_st': 'PQ stuff',
    'aAcc': 'pixel accuracy',
    'mAcc': 'class accuracy',
    'top1': 'top-1',
    'top5': 'top-5',
}
_SIZES = {'_s': ' small', '_m': ' medium', '_l': ' large'}
_IN_PERCENT = {'aAcc', 'mIoU', 'mAcc', 'mDice', 'mFscore', 'mPrecision', 'mRecall', 'top1', 'top5'}
_GROUPS_IN_PERCENT = (
    'accuracy/', 'single-label/', 'multi-label/', 'retrieval/', 'coco_panoptic/',
)  # fmt: skip
"""Metrics that the hosts report in percent: their names, or how their keys begin."""


def metric_names(keys: Iterable[str]) -> dict[str, str]:
    """The names of metrics of the hosts: 'coco/bbox_mAP_50' -> 'AP50', beside masks 'box AP50'.

    Others, and those whose names would be the same, keep their keys.
    """
    names = {key: _name(key) for key in keys}
    if any(name.startswith('mask ') for name in names.values()):
        names = {key: f'box {name}' if 'bbox_mAP' in key else name for key, name in names.items()}
    uses = Counter(names.values())
    return {key: name if uses[name] == 1 else key for key, name in names.items()}


def metric_text(key: str, value: object) -> str:
    """A value from 0 to 1 with three decimals; a dash for NaN, and for COCO's -1: no objects."""
    if not isinstance(value, Real):  # some metrics return lists or tensors
        return str(value)
    if math.isnan(value) or value == -1:
        return '–'
    name = key.rpartition('/')[2]
    in_percent = name in _IN_PERCENT or key.startswith(_GROUPS_IN_PERCENT)
    return f'{value / 100 if in_percent else value:.3f}'


def readable(metrics: Mapping[str, object]) -> dict[str, str]:
    """All metrics of an evaluation with the names and values that people read."""
    names = metric_names(metrics)
    return {names[key]: metric_text(key, value) for key, value in metrics.items()}


def main_metrics(metrics: Mapping[str, object]) -> list[str]:
    """The metrics for one line: PQ, AP and AP50 of masks and boxes, or the first two of others.

    mmseg reports mIoU second, and it is the main one.
    """
    of_coco = [
        f'{prefix}{kind}_mAP{ending}'
        for prefix in dict.fromkeys(key.removesuffix(key.rpartition('/')[2]) for key in metrics)
        for kind in ('segm', 'bbox')
        for ending in ('', '_50')
    ]
    panoptic = [key for key in metrics if key.endswith('/PQ')]
    found = panoptic + [key for key in of_coco if key in metrics]
    return found or sorted(metrics, key=lambda key: key != 'mIoU')[:2]


def _name(key: str) -> str:
    name = key.rpartition('/')[2]
    for known, shown in _NAMES.items():
        if name == known:
            return shown
        if known.endswith('mAP') and name.startswith(f'{known}_'):
            ending = name.removeprefix(known)
            return shown + _SIZES.get(ending, ending.removeprefix('_'))
    return key
