# As data_detection.py, with a mask of each object.
_base_ = './data_detection.py'

_base_.train_dataloader.dataset.pipeline[1].with_mask = True
# The best checkpoint is the one with the best first metric.
val_evaluator = dict(metric=['segm', 'bbox'])
test_evaluator = val_evaluator
