# Your own data in COCO's format: change the two lines below, then
#     python tools/check_config.py configs/custom_coco.py
# The folder holds train/ and val/ with images, annotations/instances_{train,val}.json beside them.
_base_ = './retinanet_ptnt_s_1x.py'

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

# With masks: inherit mask_rcnn_ptnt_s_1x.py above, and instead of this line write
#     model = dict(roi_head=dict(bbox_head=dict(num_classes=len(classes)),
#                                mask_head=dict(num_classes=len(classes))))
model = dict(bbox_head=dict(num_classes=len(classes)))
