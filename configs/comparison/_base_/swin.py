# mmdet's Swin-T at half its width and with four blocks in place of six in its third stage: as many
# multiply-adds, within a tenth, as PyramidTNT-Ti and its upsampling neck on images of 96 x 128.
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
