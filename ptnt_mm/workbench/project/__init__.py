"""Create a config from a folder of labelled images: recognise, import, split, choose, write."""
