"""From the paper's table to ours: what it takes, running it, and what came out."""
