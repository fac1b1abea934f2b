"""What is mmdet's own: data sets in COCO's format, their classes, boxes and masks."""
