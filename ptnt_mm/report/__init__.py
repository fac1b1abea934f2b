"""Make one page from work dirs: the course of training, and the errors of the model."""
