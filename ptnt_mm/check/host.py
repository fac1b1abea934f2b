"""What the checks need of a host library: how its data sets are read, and what else is its own."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mmengine.config import Config
from torch import nn

from ptnt_mm.check.classes import wrong_kind
from ptnt_mm.check.data import Data
from ptnt_mm.check.images import ImageFile, Listing
from ptnt_mm.check.trial import Trial
from ptnt_mm.utils.findings import Finding

Findings = Iterator[Finding]


def _nothing() -> Findings:
    """What a check has that has no quick half."""
    return iter(())


@dataclass(frozen=True)
class Check:
    """A subject, and what looks at it.

    Attributes:
        subject: The heading.
        quick: Reads the config, the annotation files and the names in folders.
        thorough: Opens images and weights, or builds the model.
    """

    subject: str
    quick: Callable[[], Findings] = _nothing
    thorough: Callable[[], Findings] = _nothing


class Host(ABC):
    """A config's data as a host library reads it.

    Args:
        config: The config; its host library is imported.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.
    """

    listing: Listing
    """Where the names of images come from."""

    def __init__(self, config: Config, splits: tuple[str, ...]):
        self.config = config
        self.splits = splits

    @cached_property
    def _loaded(self) -> tuple[Sequence[Data], list[Finding]]:
        return self.load()

    @property
    def data(self) -> Sequence[Data]:
        """The data sets."""
        return self._loaded[0]

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names that heads learn; none if they are not known."""
        trained = [one for one in self.data if one.trains and self.knows_classes(one)]
        return trained[0].known_to_heads if trained else ()

    def annotations(self) -> Findings:
        """What reading the data sets has found."""
        yield from self._loaded[1]

    def knows_classes(self, data: Data) -> bool:
        """Whether class names are those that the data set is about, however they are spelt."""
        return not any(wrong_kind(data))

    @property
    @abstractmethod
    def images(self) -> list[ImageFile]:
        """All images of the data sets."""

    @abstractmethod
    def load(self) -> tuple[Sequence[Data], list[Finding]]:
        """Read the data sets; what is wrong with them, or was left out, beside them."""

    @abstractmethod
    def class_names(self) -> Findings:
        """Look at the class names."""

    @abstractmethod
    def further(self) -> tuple[Check, ...]:
        """What is to be looked at behind images, classes and heads."""

    @abstractmethod
    def trial(self, model: nn.Module, gpus: int) -> Trial:
        """Prepare a step of training.

        Args:
            model: Of the config.
            gpus: The number of processes that will train, one for each GPU.

        Raises:
            UserError: if the data set cannot be built, or its pipeline fails.
        """
