"""Whether the device has the memory that a step of training takes."""

from collections.abc import Iterator

from mmengine.config import Config

from ptnt_mm.engine.training_memory import StepMemory, free_memory
from ptnt_mm.utils.findings import Finding, note, sound, warning
from ptnt_mm.utils.text import binary


def check_memory(config: Config, step: StepMemory) -> Iterator[Finding]:
    """Compare the estimate for a batch with what the device has."""
    images = config.train_dataloader.get('batch_size', 1)
    needed = step.weights + step.image * images
    what = (
        f'a step takes about {binary(needed)}: {binary(step.weights)} for weights, gradients '
        f'and optimizer, {images} x {binary(step.image)} for images of {step.area / 1e6:.2f} '
        'megapixels in 32 bits'
    )
    device, free = free_memory()
    if free is None:
        yield note('Memory', f'{what}; this system does not say how much it has')
    elif needed > free:
        advice = 'lower train_dataloader.batch_size, set model.backbone.with_cp=True, or use --amp'
        yield warning('Memory', f'{what}; {device} has {binary(free)} free', advice)
    else:
        yield sound('Memory', f'{what}; {device} has {binary(free)} free')
