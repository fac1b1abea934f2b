"""From a folder of labelled images to a config: recognise, import, split, choose, write."""
