"""Pictures for classifiers, for the demos of the Makefile."""
