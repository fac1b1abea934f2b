"""Seed all random generators from the seed of a run and its progress."""

import random

import numpy as np
import torch

EPOCHS, ITERATIONS, SAMPLES = range(3)
"""Purposes of random numbers: the data of an epoch, the model in an iteration, one sample.

They are part of the key, so that epoch 3 and iteration 3 draw different numbers.
"""


def seed_all(*numbers: int) -> None:
    """Seed every generator of this process with a key that identifies these numbers."""
    torch.manual_seed(seed_cpu(*numbers))


def seed_cpu(*numbers: int) -> int:
    """Seed the CPU generators only; return the seed for those of accelerators."""
    words = np.random.SeedSequence(numbers).generate_state(4)
    random.seed(int(words[0]))
    np.random.seed(words[1])
    seed = int(words[2]) << 32 | int(words[3])
    torch.default_generator.manual_seed(seed)
    return seed
