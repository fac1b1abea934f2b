"""Pictures for classifiers, and drawings of results, for the demos of the Makefile."""
