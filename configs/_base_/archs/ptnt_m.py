# PyramidTNT-M: its name, and the channels of its maps at strides 8, 16, 32 and 64.
arch = 'medium'
channels = [192, 384, 768, 768]
