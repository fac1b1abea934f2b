"""What training a config takes: schedule, GPU hours, weights, parameters and multiply-adds."""

from ptnt_mm.engine.complexity import build, measure
from ptnt_mm.utils.tables import new_table, to_text
from reproduction.entries import Entry
from reproduction.step_times import StepTime
from reproduction.trainings import WEIGHTS_SOURCE


def gpu_hours(entry: Entry, step: StepTime) -> float:
    """Return the hours that one device needs for the schedule, without evaluations."""
    images = entry.schedule.length * entry.schedule.images
    return images * step.seconds / step.images / 3600


def plan_table(chosen: list[Entry], times: dict[str, StepTime]) -> str:
    """Return a table of schedules, GPU hours and weights, with notes.

    Args:
        chosen: The entries to list.
        times: Measured step times by :attr:`Entry.step`.
    """
    table = new_table('config', 'schedule', 'GPU hours', 'measured on', 'weights')
    hours = [gpu_hours(entry, times[entry.step]) for entry in chosen if entry.step in times]
    for entry in chosen:
        step = times.get(entry.step)
        measured = (f'{gpu_hours(entry, step):.0f}', step.device) if step else ('', '')
        table.add_row(entry.name, str(entry.schedule), *measured, entry.weights or 'none')
    notes = [
        'GPU hours are the images of the whole schedule x the time per image of a training step, '
        'without evaluation, data loading and communication between GPUs.'
    ]
    if len(hours) < len(chosen):
        notes.append(
            f'{len(chosen) - len(hours)} of {len(chosen)} rows are empty: no step was measured. On '
            'the training GPU, run: python tools/reproduce.py measure CONFIG --device cuda'
        )
    if hours:
        notes.append(f'Together: {sum(hours):.0f} GPU hours in {len(hours)} rows.')
    notes.append(f'Links to the weights, with passwords, are on {WEIGHTS_SOURCE}')
    return '\n\n'.join([to_text(table), *notes])


def cost_table(chosen: list[Entry]) -> str:
    """Return a table of parameters and multiply-adds, for one image of the benchmark's size."""
    costs = ('parameters', 'multiply-adds', 'without attention products')
    table = new_table('config', 'image', *costs)
    for entry in chosen:
        height, width = entry.counted_size
        total = measure(build(entry.name), (height, width)).total
        table.add_row(
            entry.name,
            f'{height} x {width}',
            f'{total.parameters / 1e6:.2f} M',
            f'{total.multiply_adds / 1e9:.1f} G',
            f'{total.without_attention_products / 1e9:.1f} G',
        )
    return to_text(table)
