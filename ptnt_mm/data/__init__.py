"""Files on disk: COCO annotations, masks and images."""
