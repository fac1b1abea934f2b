"""Lengths of trainings, and how to keep a recipe on a different number of GPUs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ptnt_mm.utils.errors import UserError


@dataclass(frozen=True)
class Schedule(ABC):
    """A number of epochs or iterations, in the unit in which the host counts evaluations.

    Attributes:
        length: Number of epochs or iterations.
        images: Number of images in one epoch or iteration.
        gpus: Number of GPUs, each with the config's batch, that the learning rate is for.
    """

    length: int
    images: int
    gpus: int

    unit: ClassVar[str]

    def __str__(self) -> str:
        return f'{self.length:,} {self.units}'

    @property
    def units(self) -> str:
        """The plural of :attr:`unit`."""
        return f'{self.unit}s'

    @property
    def all_images(self) -> int:
        """Number of images in the whole schedule, repetitions included."""
        return self.length * self.images

    @abstractmethod
    def flags(self, gpus: int) -> list[str]:
        """Return the flags of ``tools/train.py`` that keep the recipe on this number of GPUs.

        Raises:
            UserError: if the recipe does not fit this number of GPUs.
        """


class Epochs(Schedule):
    """Passes over the data set. With other GPUs, batch and learning rate change together."""

    unit = 'epoch'

    def flags(self, gpus: int) -> list[str]:
        """Return the flag that scales the learning rate, unless the number is the recipe's."""
        return [] if gpus == self.gpus else ['--auto-scale-lr']


class Iterations(Schedule):
    """Training steps. Another batch would change the total of images, so the batch is kept."""

    unit = 'iteration'

    def flags(self, gpus: int) -> list[str]:
        """Return the flags that divide the images of a step among the GPUs.

        Raises:
            UserError: if they cannot be divided evenly.
        """
        if gpus == self.gpus:
            return []
        if self.images % gpus:
            fitting = [n for n in range(1, self.images + 1) if self.images % n == 0]
            raise UserError(
                f'--gpus {gpus}: the {self.images} images of an iteration cannot be divided evenly '
                f'among the GPUs: expected one of {", ".join(map(str, fitting))}'
            )
        return ['--cfg-options', f'train_dataloader.batch_size={self.images // gpus}']
