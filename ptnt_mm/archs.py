"""PyramidTNT's variants as data (arXiv 2201.00978, table 1, and its authors' code)."""

PATCH = 8
"""Side of an outer token of the first stage, in pixels."""

NUM_STAGES = 4

ARCHS = {
    'tiny': dict(
        depths=(2, 6, 3, 2),
        inner_depths=(1, 1, 1, 1),
        outer_dims=(80, 160, 320, 320),
        inner_dims=(5, 10, 20, 20),
        outer_heads=(2, 4, 8, 8),
        inner_heads=(1, 2, 4, 4),
        pretrain_img_size=192,
    ),
    'small': dict(
        depths=(2, 8, 4, 2),
        inner_depths=(1, 2, 1, 1),
        outer_dims=(128, 256, 512, 512),
        inner_dims=(8, 16, 32, 32),
        outer_heads=(4, 8, 16, 16),
        inner_heads=(2, 4, 8, 8),
        pretrain_img_size=256,
    ),
    'medium': dict(
        depths=(2, 8, 6, 2),
        inner_depths=(1, 2, 1, 1),
        outer_dims=(192, 384, 768, 768),
        inner_dims=(12, 24, 48, 48),
        outer_heads=(4, 8, 16, 16),
        inner_heads=(2, 4, 8, 8),
        pretrain_img_size=256,
    ),
    'base': dict(
        depths=(2, 10, 6, 2),
        inner_depths=(1, 2, 1, 1),
        outer_dims=(256, 512, 1024, 1024),
        inner_dims=(16, 32, 64, 64),
        outer_heads=(4, 8, 16, 16),
        inner_heads=(2, 4, 8, 8),
        pretrain_img_size=256,
    ),
}
"""The published variants, one value a stage.

``inner_depths`` says how many blocks of a stage, from the first, have an inner transformer.
``pretrain_img_size`` is the side, in pixels, of the images that the position tables belong to.
"""

SR_RATIOS = (4, 2, 1, 1)
"""Side of the windows that a stage's outer keys are averaged over, in tokens."""
