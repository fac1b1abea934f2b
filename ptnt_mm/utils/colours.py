"""The colours of classes and lines."""

# Okabe and Ito's colours without black (RGB), which colour-blind people can tell apart.
PALETTE = (
    (230, 159, 0),  # orange
    (86, 180, 233),  # sky blue
    (0, 158, 115),  # bluish green
    (204, 121, 167),  # reddish purple
    (213, 94, 0),  # vermilion
    (0, 114, 178),  # blue
    (240, 228, 66),  # yellow
)
