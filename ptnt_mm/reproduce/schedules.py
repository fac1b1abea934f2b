"""How long trainings are, and what keeps a recipe on another number of GPUs than its own."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ptnt_mm.errors import UserError


@dataclass(frozen=True)
class Schedule(ABC):
    """A number of epochs or iterations, whatever a host counts evaluations by.

    Attributes:
        length: How many.
        images: That one of them trains on.
        gpus: That the learning rate is for, with the config's batch on each.
    """

    length: int
    images: int
    gpus: int

    unit: ClassVar[str]

    def __str__(self) -> str:
        return f'{self.length:,} {self.units}'

    @property
    def units(self) -> str:
        """The unit of several."""
        return f'{self.unit}s'

    @property
    def all_images(self) -> int:
        """Images until the end, each as often as it is trained on."""
        return self.length * self.images

    @abstractmethod
    def flags(self, gpus: int) -> list[str]:
        """What ``tools/train.py`` needs to keep the recipe on another number of GPUs.

        Raises:
            UserError: if it cannot be kept on so many.
        """


class Epochs(Schedule):
    """Passes through the data set: the batch may change, and the learning rate changes with it."""

    unit = 'epoch'

    def flags(self, gpus: int) -> list[str]:
        """Have the learning rate scaled."""
        return [] if gpus == self.gpus else ['--auto-scale-lr']


class Iterations(Schedule):
    """Steps: of another batch they would be another number of images, so the batch is kept."""

    unit = 'iteration'

    def flags(self, gpus: int) -> list[str]:
        """Share the images of a step among the GPUs.

        Raises:
            UserError: if some would get more than others.
        """
        if gpus == self.gpus:
            return []
        if self.images % gpus:
            fitting = [n for n in range(1, self.images + 1) if self.images % n == 0]
            raise UserError(
                f'--gpus {gpus}: the recipe has {self.images} images an iteration, which so many '
                f'GPUs cannot share: expected one of {", ".join(map(str, fitting))}'
            )
        return ['--cfg-options', f'train_dataloader.batch_size={self.images // gpus}']
