# TNT-B: its name, and the channels of its map at stride 16.
arch = 'base'
channels = 640
