# ATSS (1912.02424): one anchor per place; which anchors are objects follows from the statistics of
# their overlaps with each object.
_base_ = ['../../models/atss_ptnt.py', '../parts.py']

model = dict(
    data_preprocessor=dict(pad_size_divisor=64),  # the last stride of the backbone
    backbone=dict(_base_.backbone, _delete_=True),
    neck=dict(_base_.pyramid, _delete_=True),
    bbox_head=dict(_base_.head, anchor_generator=dict(octave_base_scale=4)),
)
