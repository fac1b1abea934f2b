# PyramidTNT-Ti: its name, and the channels of its maps at strides 8, 16, 32 and 64.
arch = 'tiny'
channels = [80, 160, 320, 320]
