"""Images and their labels on disk, for every command: formats, shapes, tiles, the demo's data."""
