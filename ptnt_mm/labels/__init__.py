"""The labels of data sets: what files say, rules for objects, and readers of formats."""
