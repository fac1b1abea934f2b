# PyramidTNT-B: its name, and the channels of its maps at strides 8, 16, 32 and 64.
arch = 'base'
channels = [256, 512, 1024, 1024]
