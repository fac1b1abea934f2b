"""The variants as data: PyramidTNT's, TNT's and CPVT's, each from its paper."""

PATCH = 8
"""Side length of a first-stage outer token, in pixels."""

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
"""PyramidTNT (arXiv 2201.00978, table 1, and the authors' code). Tuples hold one value per stage.

``inner_depths`` is the number of blocks, counted from the stage's first, that have an inner
transformer. ``pretrain_img_size`` is the side length, in pixels, of the pretraining images; the
position tables are stored for that size.
"""

SR_RATIOS = (4, 2, 1, 1)
"""Side length, in tokens, of the windows over which each stage averages its outer keys."""

PLAIN_PATCH = 16
"""Side length of an outer token of TNT and of CPVT, in pixels."""

TNT_ARCHS = {
    'small': dict(depth=12, outer_dim=384, inner_dim=24, outer_heads=6, inner_heads=4, words=16),
    'base': dict(depth=12, outer_dim=640, inner_dim=40, outer_heads=10, inner_heads=4, words=16),
}
"""TNT (arXiv 2103.00112, table 1). ``words`` is the number of inner tokens of an outer one."""

CPVT_ARCHS = {
    'tiny': dict(depth=12, dim=192, heads=3),
    'small': dict(depth=12, dim=384, heads=6),
    'base': dict(depth=12, dim=768, heads=12),
}
"""CPVT (arXiv 2102.10882, table 1), the widths of DeiT."""
