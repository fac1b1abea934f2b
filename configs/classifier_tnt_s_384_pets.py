# Fine-tunes TNT-S on Oxford-IIIT Pets at 384 pixels (arXiv 2103.00112). 8 GPUs x 96 images.
_base_ = [
    '_base_/models/classifier_tnt_s_384.py',
    '_base_/datasets/pets_384.py',
    '_base_/schedules/fine_tuning_1000e.py',
    '_base_/default_runtime_mmpretrain.py',
]

_base_.model.head.num_classes = _base_.model.data_preprocessor.num_classes = 37
