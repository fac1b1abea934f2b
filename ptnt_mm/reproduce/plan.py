"""What it takes to train configs: epochs or iterations, GPU hours, weights and arithmetic."""

from rich.table import Table

from ptnt_mm.complexity import build, measure
from ptnt_mm.reproduce.entries import Entry
from ptnt_mm.reproduce.steps import StepTime
from ptnt_mm.reproduce.weights import SOURCE, file_name
from ptnt_mm.tables import new_table, to_text


def gpu_hours(entry: Entry, step: StepTime) -> float:
    """Hours of one device until the end of the schedule, evaluations left out."""
    return entry.schedule.all_images * step.seconds_per_image / 3600


def plan(chosen: list[Entry], times: dict[str, StepTime]) -> str:
    """A table of configs with schedules, GPU hours and weights, and notes on them.

    Args:
        chosen: Its rows.
        times: What was measured, by :attr:`Entry.step`.
    """
    table = new_table('config', 'schedule', 'GPU hours', 'measured on', 'weights')
    hours = []
    for entry in chosen:
        step = times.get(entry.step)
        if step is not None:
            hours.append(gpu_hours(entry, step))
        measured = ('', '') if step is None else (f'{hours[-1]:.0f}', step.device)
        table.add_row(entry.name, str(entry.schedule), *measured, file_name(entry.size))
    return '\n\n'.join([to_text(table), *_notes(chosen, hours)])


def cost(chosen: list[Entry]) -> str:
    """A table of parameters and multiply-adds, of one image of each benchmark's counted size."""
    table = new_table(
        'config', 'image', 'parameters', 'multiply-adds', 'without attention products'
    )
    for entry in chosen:
        _add_cost(table, entry)
    return to_text(table)


def _add_cost(table: Table, entry: Entry) -> None:
    height, width = entry.benchmark.counted_size
    total = measure(build(entry.name), (height, width)).total
    table.add_row(
        entry.name,
        f'{height} x {width}',
        f'{total.parameters / 1e6:.2f} M',
        f'{total.multiply_adds / 1e9:.1f} G',
        f'{total.without_attention_products / 1e9:.1f} G',
    )


def _notes(chosen: list[Entry], hours: list[float]) -> list[str]:
    notes = [
        'GPU hours are all images of the schedule x the time of an image in a training step, '
        'without evaluations, loading and exchange between GPUs.'
    ]
    if len(hours) < len(chosen):
        notes.append(
            f'{len(chosen) - len(hours)} of {len(chosen)} rows are empty: no step was measured. On '
            'the GPU that is to train: python tools/reproduce.py measure CONFIG --device cuda'
        )
    if hours:
        notes.append(f'Together: {sum(hours):.0f} GPU hours in {len(hours)} rows.')
    notes.append(f'Weights are linked, with their passwords, on {SOURCE}')
    return notes
