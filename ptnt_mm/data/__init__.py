"""What is on disk: COCO files and mask folders."""
