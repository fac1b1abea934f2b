"""Figures in sentences are those of the measurements that they quote."""

import json
import re

import pytest
from repository import ROOT

CPU, H100 = 'benchmark.json', 'h100/benchmark.json'
FORWARD, STEP = 'forward', 'training step'


def row(file: str, name: str, mode: str, batch: int) -> dict:
    rows = json.loads((ROOT / 'docs' / 'benchmarks' / file).read_text())['rows']
    wanted = dict(name=name, mode=mode, batch=batch, size=[800, 1344])
    return next(found for found in rows if wanted.items() <= found.items())


def times(file: str, name: str, mode: str, batch: int) -> float:
    """The time of `small` over that of another network."""
    return 1 / row(file, name, mode, batch)['ratio']


def memory(file: str, name: str, batch: int) -> float:
    """The same of the memory of a training step."""
    ours, other = (row(file, of, STEP, batch)['peak_bytes'] for of in ('ptnt_s', name))
    return ours / other


QUOTED = {
    ('performance', 'an earlier version.*?Swin-T.*?step ([0-9.]+) times'): [
        row(CPU, 'ptnt_s_eager', FORWARD, 1)['ratio'],
        row(CPU, 'ptnt_s_eager', STEP, 1)['ratio'],
        memory(CPU, 'ptnt_s_eager', 1),
        times(CPU, 'swin_t', FORWARD, 1),
        times(CPU, 'swin_t', STEP, 1),
    ],
    ('performance', 'On an H100 in bfloat16, with eight.*?times the memory'): [
        times(H100, 'swin_t', FORWARD, 8),
        times(H100, 'swin_t', STEP, 8),
        memory(H100, 'swin_t', 8),
    ],
    ('finetune', 'On an H100 in bfloat16, a training step.*?with 8'): [
        row(H100, 'ptnt_s', STEP, 2)['median_seconds']
        / row(H100, 'resnet50', STEP, 2)['median_seconds'],
        row(H100, 'ptnt_s', STEP, 8)['median_seconds']
        / row(H100, 'resnet50', STEP, 8)['median_seconds'],
    ],
}
"""The page, a pattern of its sentences, and the figures with decimals in them, in order."""


@pytest.mark.parametrize(('page', 'pattern'), QUOTED)
def test_sentences_quote_the_measurements(page: str, pattern: str):
    text = (ROOT / 'docs' / f'{page}.md').read_text()
    found = re.search(pattern, text, re.DOTALL)
    quoted = re.findall(r'\b\d+\.\d+\b', re.sub(r'\]\([^)]*\)', '', found[0]))
    expected = QUOTED[page, pattern]
    digits = (len(figure.partition('.')[2]) for figure in quoted)
    rounded = (f'{value:.{n}f}' for value, n in zip(expected, digits, strict=True))
    assert quoted == [*rounded]
