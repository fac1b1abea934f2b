"""The page of ``ptnt visualize``: predictions, feature maps and attention of a network."""
