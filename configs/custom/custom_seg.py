# Your own masks: change the two lines below, then run
#     ptnt check my_configs/custom_seg.py
# The folder holds images/{train,val}/NAME.jpg and masks/{train,val}/NAME.png. Each mask pixel is a
# class index, 0 for the first class, or 255 for pixels to ignore.
_base_ = '../ade20k/semantic_fpn_ptnt_s_40k_ade20k.py'

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
# Only ADE20K's masks start at 1 and use 0 for pixels to ignore.
_base_.train_dataloader.dataset.pipeline[1].reduce_zero_label = False
_base_.val_dataloader.dataset.pipeline[2].reduce_zero_label = False
_base_.test_dataloader.dataset.pipeline[2].reduce_zero_label = False
test_dataloader = val_dataloader

model = dict(decode_head=dict(num_classes=len(classes)))
