"""Figures in sentences are those of the measurements that they quote.

A new sentence with a figure from a table is a new row of ``QUOTED``.
"""

import json
import re

import pytest
from repository import ROOT

CPU, H100 = 'benchmark.json', 'h100/benchmark.json'
FORWARD, STEP = 'forward', 'training step'
SPEED = 'research/performance'


def row(file: str, name: str, mode: str, batch: int) -> dict:
    rows = json.loads((ROOT / 'docs' / 'research' / 'benchmarks' / file).read_text())['rows']
    wanted = dict(name=name, mode=mode, batch=batch, size=[800, 1344])
    return next(found for found in rows if wanted.items() <= found.items())


def times(file: str, name: str, mode: str, batch: int) -> float:
    """The time of `small` over that of another network."""
    return 1 / row(file, name, mode, batch)['ratio']


def memory(file: str, name: str, batch: int) -> float:
    """The same of the memory of a training step."""
    ours, other = (row(file, of, STEP, batch)['peak_bytes'] for of in ('ptnt_s', name))
    return ours / other


def cell(page: str, section: str, row: str, column: str) -> float:
    """The first number of a cell in a table of a page, the first table with such a row and column.

    Args:
        page: Its name without the suffix.
        section: The beginning of the heading above the table.
        row: The beginning of the row, without spaces at the bars.
        column: The beginning of a name in the head of the table.
    """
    text = (ROOT / 'docs' / f'{page}.md').read_text()
    (part,) = re.findall(rf'^##+ {section}.*?\n(.*?)(?=^##? |\Z)', text, re.DOTALL | re.MULTILINE)
    head: list[str] = []
    for line in part.splitlines():
        cells = [text.strip() for text in line.strip('|').split('|')]
        if not line.startswith('|'):
            head = []
        elif not head:
            head = cells
        elif '|'.join(cells).startswith(row):
            found = [i for i, name in enumerate(head) if name.startswith(column)]
            if found:
                return float(re.search(r'[0-9.]+', cells[found[0]])[0])
    raise LookupError(f'{page}: {section}: no row {row} with a column {column}')


def said(page: str, pattern: str) -> float:
    """A figure that no table has: the sentence that states the measurement."""
    return float(re.search(pattern, (ROOT / 'docs' / f'{page}.md').read_text())[1])


def peer(column: str) -> float:
    return cell('research/results', "Beside Ultralytics' YOLO", '`bccd`: PyramidTNT-Ti', column)


def recipe(row: str) -> float:
    return cell('research/results', 'How the recipe was found', row, 'box AP')


def beside(file: str, batch: int) -> list[float]:
    """Forward pass, training step and its memory: ours over those of Swin-T and ResNet-50."""
    names = ('swin_t', 'resnet50')
    passes = [times(file, name, mode, batch) for mode in (FORWARD, STEP) for name in names]
    return passes + [memory(file, name, batch) for name in names]


def amd(threads: int, vectors: str = 'AVX-512') -> list[float]:
    """The same times on an AMD processor."""
    return [
        cell(SPEED, 'Separate heads and queries', f'{vectors}|{threads}', f'{mode}: {name}')
        for mode in ('forward', 'step')
        for name in ('Swin-T', 'ResNet-50')
    ]


FIRST = recipe('PyramidTNT-Ti: 4 images per step')
SMALLER_STEPS = recipe('2 images per step|')
NO_DROP_PATH = recipe('2 images per step, no drop path|')
NORM = '2 images per step, only mirrored, anchors of half the size'
ACE = [  # seeds 0 and 1: images repeated, and not
    cell('research/results', 'Rare classes', f'||{seed}|4 times', 'AP, rare')
    - cell('research/results', 'Rare classes', first, 'AP, rare')
    for seed, first in ((0, 'ace|4 of 175|0|no'), (1, '||1|no'))
]
NUCLEI = [
    cell('research/results', 'Nuclei: semantic', f'{name}|', 'mIoU')
    for name in ('PyramidTNT-Ti', 'ResNet-18', 'PVTv2-B0')
]

BUSY = {
    busy: [
        cell(SPEED, 'Beside other programs', f'{name}|{mode}|{busy}', 'ratio')
        for name in ('ptnt_s', 'swin_t')
        for mode in (FORWARD, STEP)
    ]
    for busy in (0, 1, 3)
}
ALONE, BESIDE = BUSY[0], BUSY[1] + BUSY[3]

QUOTED = {
    ('docs/performance', r'\| H100, bfloat16, 8 images.*?\n'): beside(H100, 8),
    ('docs/performance', r'\| H100, bfloat16, 2 images.*?\n'): beside(H100, 2),
    ('docs/performance', r'\| Intel processor.*?\n'): beside(CPU, 1),
    ('docs/performance', r'\| AMD processor, 1 thread.*?\n'): amd(1),
    ('docs/performance', r'\| AMD processor, 2 threads.*?\n'): amd(2),
    ('docs/performance', r'\| the same with AVX2.*?\n'): amd(2, 'AVX2'),
    ('docs/performance', r'takes\s+only (\d+) to (\d+) %.*? takes (\d+) to (\d+) % longer'): [
        100 * row(H100, 'ptnt_b', mode, batch)['ratio'] - 100
        for batch, modes in ((2, (FORWARD, STEP)), (8, (STEP, FORWARD)))
        for mode in modes
    ],
    ('docs/performance', r'a training step takes (\d+) % longer and (\d+) % less memory'): [
        100 * row(CPU, 'ptnt_s_cp', STEP, 1)['ratio'] - 100,
        100 - 100 / memory(CPU, 'ptnt_s_cp', 1),
    ],
    (
        'docs/performance',
        r'saves (\d+) to (\d+) % of the time; with none, .*? by (\d+) % in its favour to\s+(\d+)',
    ): [
        *(100 - 100 * ratio for ratio in (max(BESIDE), min(BESIDE))),
        100 - 100 * min(ALONE),
        100 * max(ALONE) - 100,
    ],
    ('docs/training', r'PyramidTNT-S\s+needs about.*?multiply-adds'): [
        cell(SPEED, 'On an Intel processor', f'{name}|', 'GMAC') for name in ('ptnt_s', 'resnet50')
    ],
    ('docs/training', r'On an H100 in bfloat16, a training step.*?with 8'): [
        times(H100, 'resnet50', STEP, batch) for batch in (2, 8)
    ],
    ('docs/training', r'On our CPU, a training step.*?PVTv2-B1'): [
        memory(CPU, 'swin_t', 1),
        memory(CPU, 'pvt_v2_b1', 1),
    ],
    (
        'README',
        r'in (\d+) minutes on\s+one CPU core. Its AP on\s+87\s+validation images is ([0-9.]+)',
    ): [
        peer('CPU minutes'),
        peer('box AP') / 100,
    ],
    ('README.zh-CN', r'训练了 (\d+) 分钟.*?AP 为 ([0-9.]+)'): [
        peer('CPU minutes'),
        peer('box AP') / 100,
    ],
    (
        'docs/index',
        r'in (\d+) minutes on one CPU core; its AP\s+on the validation images is ([0-9.]+)',
    ): [
        peer('CPU minutes'),
        peer('box AP') / 100,
    ],
    ('README', r'PyramidTNT-S has ([0-9.]+) in its paper, \[newer backbones up to\s+([0-9.]+)\]'): [
        cell('reproduce', 'Other backbones in the same detectors', name, 'Box AP')
        for name in ('PyramidTNT-S', 'RAVLT-S')
    ],
    ('README.zh-CN', r'PyramidTNT-S 为 ([0-9.]+)，\[更新的骨干网络最高\s+([0-9.]+)\]'): [
        cell('reproduce', 'Other backbones in the same detectors', name, 'Box AP')
        for name in ('PyramidTNT-S', 'RAVLT-S')
    ],
    (
        'docs/research/results',
        r'The first recipe reached ([0-9.]+) AP on the blood cells.*?, ([0-9.]+) less',
    ): [
        FIRST,
        recipe('ResNet-18: the same') - FIRST,
    ],
    ('docs/research/results', r'\*\*Steps of 2 images instead of 4\*\* gain ([0-9.]+) AP'): [
        SMALLER_STEPS - FIRST
    ],
    ('docs/research/results', r'\*\*No varied sizes and colours\*\* gain ([0-9.]+) AP'): [
        recipe('2 images per step, no drop path, only mirrored|') - NO_DROP_PATH
    ],
    (
        'docs/research/results',
        r'\*\*GroupNorm in the pyramid and the head\*\* gains ([0-9.]+) AP',
    ): [recipe(f'{NORM}, GroupNorm') - recipe(f'{NORM}|')],
    ('docs/research/results', r'\*\*No drop path\*\*: ([0-9.]+) AP less'): [
        SMALLER_STEPS - NO_DROP_PATH
    ],
    ('docs/research/results', r'the mean of six seeds is ([0-9.]+) AP lower'): [
        cell('research/results', 'Another initialisation', "PyramidTNT-Ti, the authors'", 'box AP')
        - cell('research/results', 'Another initialisation', 'PyramidTNT-Ti, mimetic', 'box AP')
    ],
    ('docs/research/results', r'\*\*The ace gains (\d+) and (\d+) AP'): ACE,
    ('docs/research/results', r'PyramidTNT-Ti is ahead by (\d) to (\d) points of mIoU'): [
        NUCLEI[0] - other for other in NUCLEI[1:]
    ],
    ('docs/research/results', r"The demo's RetinaNet, in steps of 4, reached (\d+) AP"): [
        100 * said('install', r'0.461 and\s+([0-9.]+) after 4, 8 and 12 epochs')
    ],
}
"""The page, a pattern of its sentence, and the figures that it must quote, in order.

The figures are the groups of the pattern or, if it has none, all with decimals.
"""


@pytest.mark.parametrize(('page', 'pattern'), QUOTED)
def test_sentences_quote_the_measurements(page: str, pattern: str):
    found = re.search(pattern, (ROOT / f'{page}.md').read_text(), re.DOTALL)
    assert found, f'{page} has no such sentence any more: {pattern}'
    quoted = found.groups() or re.findall(r'\b\d+\.\d+\b', re.sub(r'\]\([^)]*\)', '', found[0]))
    expected = QUOTED[page, pattern]
    digits = (len(figure.partition('.')[2]) for figure in quoted)
    rounded = (f'{value:.{n}f}' for value, n in zip(expected, digits, strict=True))
    assert [*quoted] == [*rounded]
