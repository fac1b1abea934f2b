"""Work dirs in, one page out: how training went, and the errors of the model."""
