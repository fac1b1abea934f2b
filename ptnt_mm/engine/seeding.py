"""Random numbers that depend on what they are for, and on nothing drawn before."""

import random

import numpy as np
import torch


def seed_all(*numbers: int) -> None:
    """Seed every generator of this process with what distinguishes these numbers from others."""
    words = np.random.SeedSequence(numbers).generate_state(4)
    random.seed(int(words[0]))
    np.random.seed(words[1])
    torch.manual_seed(int(words[2]) << 32 | int(words[3]))
