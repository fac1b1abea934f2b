# Your own folders of images: change the two lines below, then run
#     ptnt check my_configs/custom_cls.py
# The folder holds train/CLASS/NAME.jpg and val/CLASS/NAME.jpg; `classes` has the names of the class
# folders, in alphabetical order.
# TNT-S is fine-tuned from its ImageNet weights as on Pets: 1,000 epochs, 8 GPUs x 96 images.
_base_ = '../fine_tuning/classifier_tnt_s_384_pets.py'

data_root = 'data/custom_cls/'
classes = ('ball', 'coin', 'crate', 'cup')

dataset = dict(type='CustomDataset', data_root=data_root, metainfo=dict(classes=classes))
train_dataloader = dict(
    dataset=dict(_delete_=True, **dataset, data_prefix='train', pipeline=_base_.train_pipeline)
)
val_dataloader = dict(
    dataset=dict(_delete_=True, **dataset, data_prefix='val', pipeline=_base_.test_pipeline)
)
test_dataloader = val_dataloader
val_evaluator = dict(topk=(1,))
test_evaluator = val_evaluator

model = dict(head=dict(num_classes=len(classes)), data_preprocessor=dict(num_classes=len(classes)))
