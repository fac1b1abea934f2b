"""From a file, an address or a name to weights that fit a model, or a reason why they do not."""
