# RetinaNet with PyramidTNT-S, COCO 1x; the paper reports 42.0 AP (arXiv 2201.00978).
# 8 GPUs x 2 images. Load the ImageNet weights with `ptnt train --pretrained FILE`.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_1x.py']
