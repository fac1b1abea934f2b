"""Work dirs in, one page out: how a training went, and what its model gets wrong."""
