# PyramidTNT-S: its name, and the channels of its maps at strides 8, 16, 32 and 64.
arch = 'small'
channels = [128, 256, 512, 512]
