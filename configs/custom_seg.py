# Your own masks: change the two lines below, then
#     python tools/check_config.py configs/custom_seg.py
# The folder holds images/{train,val}/NAME.jpg and masks/{train,val}/NAME.png, whose pixels are the
# indices of the classes, 0 for the first; 255 is for pixels that do not count.
_base_ = './semantic_fpn_ptnt_s_40k_ade20k.py'

data_root = 'data/custom_seg/'
classes = ('background', 'ball', 'coin', 'crate', 'cup')

train_dataloader = dict(
    dataset=dict(
        type='BaseSegDataset',
        data_root=data_root,
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
        img_suffix='.jpg',
        seg_map_suffix='.png',
        metainfo=dict(classes=classes),
    )
)
val_dataloader = dict(
    dataset=dict(
        type='BaseSegDataset',
        data_root=data_root,
        data_prefix=dict(img_path='images/val', seg_map_path='masks/val'),
        img_suffix='.jpg',
        seg_map_suffix='.png',
        metainfo=dict(classes=classes),
    )
)
# ADE20K's masks begin at 1, and 0 does not count there.
_base_.train_dataloader.dataset.pipeline[1].reduce_zero_label = False
_base_.val_dataloader.dataset.pipeline[2].reduce_zero_label = False
_base_.test_dataloader.dataset.pipeline[2].reduce_zero_label = False
test_dataloader = val_dataloader

model = dict(decode_head=dict(num_classes=len(classes)))
