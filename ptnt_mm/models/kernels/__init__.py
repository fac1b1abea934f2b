"""Whatever makes a network fast or small in memory and is not part of its equations."""
