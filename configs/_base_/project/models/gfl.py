# Generalized Focal Loss (2006.04388): ATSS's assignment; the score is the predicted overlap, and
# each side of a box is a distribution over distances.
_base_ = ['../../models/gfl_ptnt.py', '../parts.py']

model = dict(
    data_preprocessor=dict(pad_size_divisor=64),  # the last stride of the backbone
    backbone=dict(_base_.backbone, _delete_=True),
    neck=dict(_base_.pyramid, _delete_=True),
    bbox_head=dict(_base_.head, anchor_generator=dict(octave_base_scale=4)),
)
