"""The results of a comparison, as tables for its page and as JSON."""

import re
import statistics
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config
from torch import nn

from comparison.runs import BACKBONES, CONTENDERS, DETECTORS, SEEDS, Contender, Outcome
from ptnt_mm.engine.complexity import Part, build, measure
from ptnt_mm.utils.atomic_files import written_whole
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import markdown

_BEGIN, _END = '<!-- made by tools/dev/compare_backbones.py -->', '<!-- until here -->'


@dataclass(frozen=True)
class Comparison:
    """The outcomes of all finished runs, and the cost of each contender.

    Attributes:
        outcomes: Outcomes of the finished runs.
        costs: Cost of each backbone by config name. PyramidTNT includes its upsampling neck, which
            gives it the same strides as the others.
        shape: Height and width, in pixels, of the padded images for which costs are counted.
    """

    outcomes: tuple[Outcome, ...]
    costs: dict[str, Part]
    shape: tuple[int, int]

    def of(self, contender: Contender) -> list[Outcome]:
        """Return the outcomes of one config, in seed order."""
        return [outcome for outcome in self.outcomes if outcome.name == contender.name]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            'shape': list(self.shape),
            'costs': {name: part.to_dict() for name, part in self.costs.items()},
            'runs': [asdict(outcome) for outcome in self.outcomes],
        }

    def to_markdown(self) -> str:
        """The numbers as one table per detector, below the progress and the machines used."""
        tables = [f'### {title}\n\n{self._table(name)}' for name, title in DETECTORS.items()]
        return '\n\n'.join([self._opening(), *tables])

    def _table(self, detector: str) -> str:
        rows = [
            self._cells(contender) for contender in CONTENDERS if contender.detector == detector
        ]
        # Drop empty columns: RetinaNet has no mask AP.
        columns = [column for column in rows[0] if any(row[column] for row in rows)]
        return markdown(columns, ([row[column] for column in columns] for row in rows))

    def _opening(self) -> str:
        done, planned = len(self.outcomes), len(CONTENDERS) * len(SEEDS)
        machines = Counter(
            ', '.join(f'{key} {value}' for key, value in outcome.machine.items())
            for outcome in self.outcomes
        )
        where = '\n'.join(f'- {name}: {runs} of them' for name, runs in machines.items())
        return f'{done} of {planned} runs were done.\n\n{where}'.strip()

    def _cells(self, contender: Contender) -> dict[str, str]:
        found, cost = self.of(contender), self.costs[contender.name]
        masks = [run.mask_ap for run in found if run.mask_ap is not None]
        return {
            'backbone': BACKBONES[contender.backbone],
            'parameters': f'{cost.parameters / 1e6:.1f} M',
            'multiply-adds': f'{cost.multiply_adds / 1e9:.2f} G',
            'seeds': ', '.join(str(run.seed) for run in found),
            'box AP': _average([run.box_ap for run in found]),
            'mask AP': _average(masks),
            'seconds a run': ', '.join(f'{run.seconds:.0f}' for run in found),
        }


def compare(found: list[Outcome]) -> Comparison:
    """Count the cost of every contender, and combine it with the outcomes."""
    shape = _padded(Config.fromfile(CONTENDERS[0].config))
    costs = {contender.name: _cost(contender, shape) for contender in CONTENDERS}
    return Comparison(tuple(found), costs, shape)


def check_page(page: Path) -> None:
    """Check before the work starts that a page has the markers around the table.

    Raises:
        UserError: if the page or its markers are missing.
    """
    text = page.read_text(encoding='utf-8') if page.is_file() else ''
    if _BEGIN not in text or _END not in text.partition(_BEGIN)[2]:
        raise UserError(f'{page} lacks the lines {_BEGIN} and {_END}; the table goes between them')


def update_page(page: Path, comparison: Comparison) -> None:
    """Replace the table between the markers of a page.

    Raises:
        UserError: if the page or its markers are missing, or it cannot be written.
    """
    check_page(page)
    text = page.read_text(encoding='utf-8')
    made = f'{_BEGIN}\n\n{comparison.to_markdown()}\n\n{_END}'
    pattern = re.compile(f'{re.escape(_BEGIN)}.*?{re.escape(_END)}', re.DOTALL)
    with written_whole(page) as partial:
        partial.write_text(pattern.sub(lambda _: made, text, count=1), encoding='utf-8')


def _average(values: list[float]) -> str:
    """Format the mean and the single values, in percent."""
    each = ', '.join(f'{100 * value:.1f}' for value in values)
    return f'**{100 * statistics.mean(values):.1f}** ({each})' if values else ''


def _cost(contender: Contender, shape: tuple[int, int]) -> Part:
    detector = build(str(contender.config))
    # Leave out the last neck, a pyramid that all share. PyramidTNT has another neck before it.
    trunk = nn.Sequential(detector.backbone, *list(detector.neck)[:-1])
    return measure(trunk, shape).total


def _padded(config: Config) -> tuple[int, int]:
    """Return the height and width of the padded images that the model gets."""
    width, height = config.image_scale
    divisor = config.model.data_preprocessor.pad_size_divisor
    return -(-height // divisor) * divisor, -(-width // divisor) * divisor
