"""Ways to compute attention and blocks: the published one, and those that save time or memory."""
