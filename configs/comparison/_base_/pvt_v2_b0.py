peer = dict(
    type='PyramidVisionTransformerV2', embed_dims=32, num_layers=(2, 2, 2, 2), drop_path_rate=0.0
)
channels = [32, 64, 160, 256]
custom_keys = dict()
