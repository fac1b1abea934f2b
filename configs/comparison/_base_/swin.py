# mmdet's Swin-T with half the width and four blocks instead of six in its third stage. On images of
# 96 x 128 its multiply-adds are within 10 % of PyramidTNT-Ti with its upsampling neck.
peer = dict(
    type='SwinTransformer',
    embed_dims=48,
    depths=(2, 2, 4, 2),
    num_heads=(3, 6, 12, 24),
    window_size=7,
    drop_path_rate=0.0,
)
channels = [48, 96, 192, 384]
custom_keys = dict(relative_position_bias_table=dict(decay_mult=0.0))
