"""Names and values of evaluation metrics as people read them."""

from collections.abc import Mapping

_NAMES = {
    'bbox_mAP': 'AP',
    'segm_mAP': 'mask AP',
    'aAcc': 'pixel accuracy',
    'mAcc': 'class accuracy',
    'top1': 'top-1',
    'top5': 'top-5',
}
_SIZES = {'_s': ' small', '_m': ' medium', '_l': ' large'}
_IN_PERCENT = ('aAcc', 'mIoU', 'mAcc', 'mDice', 'mFscore', 'mPrecision', 'mRecall', 'accuracy/')
"""How the names of metrics begin that mmseg and mmpretrain report in percent."""


def metric_name(key: str) -> str:
    """The name of a metric of the hosts: 'coco/bbox_mAP_50' -> 'AP50'. Others stay as they are."""
    name = key.rpartition('/')[2]
    for known, shown in _NAMES.items():
        if name == known:
            return shown
        if known.endswith('mAP') and name.startswith(f'{known}_'):
            ending = name.removeprefix(known)
            return shown + _SIZES.get(ending, ending.removeprefix('_'))
    return key


def metric_text(key: str, value: float) -> str:
    """A value from 0 to 1 with three decimals; a dash for NaN, and for COCO's -1: no objects."""
    if not value >= 0:
        return '–'
    return f'{value / 100 if key.startswith(_IN_PERCENT) else value:.3f}'


def scored(key: str, value: float) -> str:
    """A metric with its value: 'AP50 0.901'."""
    return f'{metric_name(key)} {metric_text(key, value)}'


def main_metrics(metrics: Mapping[str, float]) -> list[str]:
    """The metrics for one line: AP and AP50 of masks and boxes, or the first two of others.

    mmseg reports mIoU second, and it is the main one.
    """
    of_coco = [
        f'{prefix}{kind}_mAP{ending}'
        for prefix in dict.fromkeys(key.partition('/')[0] + '/' for key in metrics)
        for kind in ('segm', 'bbox')
        for ending in ('', '_50')
    ]
    found = [key for key in of_coco if key in metrics]
    return found or sorted(metrics, key=lambda key: key != 'mIoU')[:2]
