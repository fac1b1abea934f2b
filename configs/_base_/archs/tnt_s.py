# TNT-S: its name, and the channels of its map at stride 16.
arch = 'small'
channels = 384
