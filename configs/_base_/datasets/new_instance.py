# As new_detection.py, with a mask of each object.
_base_ = './new_detection.py'

_base_.train_dataloader.dataset.pipeline[1].with_mask = True
val_evaluator = dict(metric=['bbox', 'segm'])
test_evaluator = val_evaluator
