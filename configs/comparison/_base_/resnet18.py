# Weights are random, so nothing is frozen and BatchNorm learns its statistics.
peer = dict(type='ResNet', depth=18, frozen_stages=-1, norm_eval=False)
channels = [64, 128, 256, 512]
custom_keys = dict()
