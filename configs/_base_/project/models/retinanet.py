# RetinaNet (1708.02002): nine anchors per place, focal loss.
_base_ = ['../../models/retinanet_ptnt.py', '../parts.py']

model = dict(
    data_preprocessor=dict(pad_size_divisor=64),  # the last stride of the backbone
    backbone=dict(_base_.backbone, _delete_=True),
    neck=dict(_base_.pyramid, _delete_=True),
    bbox_head=_base_.head,
)
