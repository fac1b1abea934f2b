# Your own data in COCO format: change the two lines below, then run
#     ptnt check my_configs/custom_coco.py
# The folder holds images in train/ and val/, and annotations/instances_{train,val}.json.
_base_ = '../retinanet_ptnt_s_1x.py'

data_root = 'data/custom/'
classes = ('ball', 'coin', 'crate', 'cup')

metainfo = dict(classes=classes)
train_dataloader = dict(
    dataset=dict(
        data_root=data_root,
        ann_file='annotations/instances_train.json',
        data_prefix=dict(img='train/'),
        metainfo=metainfo,
    )
)
val_dataloader = dict(
    dataset=dict(
        data_root=data_root,
        ann_file='annotations/instances_val.json',
        data_prefix=dict(img='val/'),
        metainfo=metainfo,
    )
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + 'annotations/instances_val.json')
test_evaluator = val_evaluator

# For instance masks, copy their base next to this file:
#     ptnt configs copy mask_rcnn_ptnt_s_1x my_configs
# Then set _base_ to 'mask_rcnn_ptnt_s_1x.py' and replace the last line of this file by
#     model = dict(roi_head=dict(bbox_head=dict(num_classes=len(classes)),
#                                mask_head=dict(num_classes=len(classes))))
model = dict(bbox_head=dict(num_classes=len(classes)))
