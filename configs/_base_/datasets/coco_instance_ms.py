# Like coco_detection_ms.py, with masks.
_base_ = './coco_detection_ms.py'

_base_.train_dataloader.dataset.pipeline[1].with_mask = True
val_evaluator = dict(metric=['bbox', 'segm'])
test_evaluator = val_evaluator
