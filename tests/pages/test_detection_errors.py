"""The split of errors: a case by hand, and pycocotools' own AP."""

from pathlib import Path

import numpy as np
import pytest

from .made_runs import annotations, report_of_detector, results

ERRORS = ('classification', 'localisation', 'both', 'duplicate', 'background', 'missed')

BOTH_KINDS = pytest.mark.parametrize('kind', ['bbox', 'segm'])


@BOTH_KINDS
def test_by_hand(tmp_path: Path, kind: str):
    split = report_of_detector(tmp_path, results(kind), kind).split
    kinds = [one.kind for one in split.detections if one.entry['image_id'] == 1]
    assert kinds == ['correct', 'duplicate', 'classification']
    assert {k: split.counts[k] for k in ERRORS} == dict.fromkeys(ERRORS, 1)
    # A third of the balls is found at a precision of 1: 34 of 101 recalls. No cup is found.
    now = (34 / 101 + 0) / 2
    assert split.average_precision() == pytest.approx(now)
    fixed = {
        # The false ball is on the cup, and has a higher score than the false cup.
        'classification': (34 / 101 + 1) / 2,
        # The fourth ball is right: up to a recall of 2/3 the precision is a half.
        'localisation': ((34 + 33 / 2) / 101 + 0) / 2,
        # One of the two remaining balls is found.
        'missed': (51 / 101 + 0) / 2,
    }
    for error, cost in split.costs.items():
        assert cost == pytest.approx(fixed.get(error, now) - now), error
    assert split.average_precision(ERRORS) == pytest.approx(1)


@BOTH_KINDS
@pytest.mark.parametrize('seed', range(4))
def test_as_pycocotools(tmp_path: Path, kind: str, seed: int):
    truth, found = random_case(seed)
    truth = annotations(truth, images=6, crowds=(0, 7))
    report = report_of_detector(tmp_path, results(kind, found), kind, truth)
    split, (twelve,) = report.split, report.numbers().values()
    assert split.average_precision() == pytest.approx(twelve['AP50'], abs=1e-12)
    assert split.average_precision(ERRORS) == pytest.approx(1)
    assert min(split.counts[k] for k in ERRORS) > 0, 'the case has every kind'
    # Fixing errors never lowers the AP.
    assert min(split.costs.values()) >= 0


def random_case(seed: int) -> tuple[list, list]:
    """Random objects, and detections that are mostly near one, of its class or another."""
    random = np.random.default_rng(seed)
    truth, found = [], []
    for image in range(1, 7):
        for x, y in ((5, 5), (40, 10), (10, 50), (50, 50)):
            name, box = random.choice(['ball', 'cup']), (x, y, *random.integers(10, 40, 2).tolist())
            truth.append((image, str(name), box))
            for _ in range(random.integers(0, 4)):
                shift = random.integers(-12, 13, 4) * (random.random() < 0.7)
                near = np.clip(np.array(box) + shift, 1, 50).tolist()
                label = str(name if random.random() < 0.6 else random.choice(['ball', 'cup']))
                # Rounded, so that some scores are equal.
                found.append((image, label, near, round(random.random(), 1)))
    return truth, found


def test_a_detection_in_a_crowd_is_no_error(tmp_path: Path):
    truth = annotations([(1, 'ball', (0, 0, 50, 50)), (2, 'ball', (0, 0, 9, 9))], crowds=(0,))
    found = results('bbox', [(1, 'ball', (5, 5, 9, 9), 0.9)])
    split = report_of_detector(tmp_path, found, truth=truth).split
    assert not split.detections and list(split.truths) == [2]
    assert split.counts == {'missed': 1}


def test_only_the_best_of_several_fixed_detections_counts(tmp_path: Path):
    near = [(1, 'ball', (0, 0, 10, height), 0.5 + height / 100) for height in (4, 3)]
    truth = annotations([(1, 'ball', (0, 0, 10, 10))])
    split = report_of_detector(tmp_path, results('bbox', near), truth=truth).split
    assert split.counts == {'localisation': 2}
    assert split.average_precision({'localisation'}) == pytest.approx(1)
    assert next(iter(split.truths.values())).score == pytest.approx(0.54)
