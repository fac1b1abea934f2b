"""Faults in the settings of validation and test, and unusual but correct settings.

They were written before the rules and the evaluation of an image that look for them.
"""

from collections.abc import Callable

from mmengine.config import Config

from .settings_demo import (
    both,
    drop_meta,
    inserted,
    put,
    removed,
    set_step,
    swapped,
    wrapped,
)

Change = Callable[[Config], object]

FASTER = 'mmdet/faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
MASK = 'mmdet/mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py'
FCOS = 'mmdet/fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py'
YOLOX = 'mmdet/yolox/yolox_tiny_8xb8-300e_coco.py'
RTMDET = 'mmdet/rtmdet/rtmdet_tiny_8xb32-300e_coco.py'
FCN = 'mmseg/fcn/fcn_r18-d8_4xb2-80k_cityscapes-512x1024.py'
PSPNET = 'mmseg/pspnet/pspnet_r18-d8_4xb2-80k_cityscapes-512x1024.py'
SEGFORMER = 'mmseg/segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py'
RESNET = 'mmpretrain/resnet/resnet18_8xb32_in1k.py'
MOBILENET = 'mmpretrain/mobilenet_v3/mobilenet-v3-small-050_8xb128_in1k.py'

FAULTS: dict[str, tuple[str, Change, str]] = {
    # Meta keys
    'no scale_factor': ('retinanet', drop_meta('val', 'scale_factor'), "lacks 'scale_factor'"),
    'no img_id': ('retinanet', drop_meta('val', 'img_id'), "lacks 'img_id'"),
    'no ori_shape': ('retinanet', drop_meta('val', 'ori_shape'), "lacks 'ori_shape'"),
    'no img_shape': ('retinanet', drop_meta('val', 'img_shape'), "lacks 'img_shape'"),
    'no ori_shape for masks': ('mask_rcnn', drop_meta('val', 'ori_shape'), "lacks 'ori_shape'"),
    'no scale_factor in test': (FASTER, drop_meta('test', 'scale_factor'), "lacks 'scale_factor'"),
    'no scale_factor, points': (FCOS, drop_meta('val', 'scale_factor'), "lacks 'scale_factor'"),
    'no img_id, one stage': (YOLOX, drop_meta('val', 'img_id'), "lacks 'img_id'"),
    # The evaluation stops at the first of them.
    'no two keys': (RTMDET, drop_meta('val', 'img_id', 'scale_factor'), "lacks 'scale_factor'"),
    'no ori_shape, maps': (
        'semantic_fpn',
        set_step('val', 'PackSegInputs', meta_keys=('img_path', 'img_shape')),
        "lacks 'ori_shape'",
    ),
    'no img_shape, maps': (
        FCN,
        set_step('val', 'PackSegInputs', meta_keys=('img_path', 'ori_shape')),
        "lacks 'img_shape'",
    ),
    'no flip_direction in TTA': (
        'retinanet',
        drop_meta('tta', 'flip_direction'),
        "lacks 'flip_direction'",
    ),
    'no flip in TTA': ('retinanet', drop_meta('tta', 'flip'), "lacks 'flip'"),
    'no img_id in TTA': ('mask_rcnn', drop_meta('tta', 'img_id'), "lacks 'img_id'"),
    # Pipelines
    'boxes for masks alone': (
        MASK,
        put({'val_evaluator.metric': ['bbox', 'segm'], 'model.roi_head.mask_head': None}),
        'segm',
    ),
    'always mirrored': ('retinanet', inserted('val', 2, type='RandomFlip', prob=1.0), 'RandomFlip'),
    'mirrored at random': (FCN, inserted('val', 3, type='RandomFlip', prob=0.5), 'RandomFlip'),
    'cropped detections': (
        'retinanet',
        inserted('val', 3, type='RandomCrop', crop_size=(128, 128)),
        'RandomCrop',
    ),
    'cropped maps': (
        'semantic_fpn',
        inserted('val', 3, type='RandomCrop', crop_size=(128, 128)),
        'RandomCrop',
    ),
    'distorted colours': (PSPNET, inserted('val', 1, type='PhotoMetricDistortion'), 'PhotoMetric'),
    'crops of classification': (
        'classifier',
        swapped('val', 'Resize', type='RandomResizedCrop', scale=64),
        'RandomResizedCrop',
    ),
    'erased in validation': (
        RESNET,
        inserted('val', 2, type='RandomErasing', mode='rand'),
        'RandomErasing',
    ),
    # Both were thought to be correct.
    'SSD, which mmdet 3.3.0 cannot evaluate': (
        'mmdet/ssd/ssdlite_mobilenetv2-scratch_8xb24-600e_coco.py',
        put({}),
        "'SSDHead' object has no attribute 'loss_cls'",
    ),
    'no instances for a metric without a file': (
        'retinanet',
        put({'val_evaluator.ann_file': None}),
        "lacks 'instances'",
    ),
    'no packing': (RESNET, removed('val', 'PackInputs'), 'val'),
    'no packing of boxes': ('retinanet', removed('val', 'PackDetInputs'), 'val'),
    'no loading': (FASTER, removed('val', 'LoadImageFromFile'), 'val'),
    'no masks to compare with': ('semantic_fpn', removed('val', 'LoadAnnotations'), 'val'),
    'masks resized too': (
        'semantic_fpn',
        both(removed('val', 'LoadAnnotations'), inserted('val', 1, type='LoadAnnotations')),
        'val',
    ),
    'other shape in validation': (FCOS, set_step('val', 'Resize', keep_ratio=False), 'keep_ratio'),
    'grey in validation': (
        'retinanet',
        set_step('val', 'LoadImageFromFile', color_type='grayscale'),
        'val',
    ),
    'sizes that make no batch': (
        'classifier',
        set_step('val', 'Resize', scale=(64, -1), keep_ratio=True),
        'val',
    ),
    'maps of several sizes in a batch': (FCN, put({'val_dataloader.batch_size': 4}), 'val'),
    'a loader of images that is not installed': (
        'retinanet',
        set_step('val', 'LoadImageFromFile', imdecode_backend='turbojpeg'),
        'val',
    ),
    # Data sets and loaders
    'no test_mode': (FASTER, put({'val_dataloader.dataset.test_mode': False}), 'test_mode'),
    'dropped images': ('retinanet', put({'val_dataloader.drop_last': True}), 'drop_last'),
    'endless validation': (
        'semantic_fpn',
        put({'val_dataloader.sampler': dict(type='InfiniteSampler', shuffle=False)}),
        'sampler',
    ),
    'batch of none': ('retinanet', put({'val_dataloader.batch_size': 0}), 'batch_size'),
    'negative workers': ('classifier', put({'val_dataloader.num_workers': -1}), 'num_workers'),
    'workers that persist without being': (
        'retinanet',
        put({'val_dataloader.num_workers': 0}),
        'persistent_workers',
    ),
    # Post-processing
    'nothing kept': ('retinanet', put({'model.test_cfg.max_per_img': 0}), 'max_per_img'),
    'nothing kept of regions': (FASTER, put({'model.test_cfg.rpn.max_per_img': 0}), 'max_per_img'),
    'nothing looked at': ('retinanet', put({'model.test_cfg.nms_pre': 0}), 'nms_pre'),
    'score in percent': ('retinanet', put({'model.test_cfg.score_thr': 5}), 'score_thr'),
    'score in percent, nested': (
        FASTER,
        put({'model.test_cfg.rcnn.score_thr': 30}),
        'test_cfg.rcnn.score_thr',
    ),
    'overlap above 1': (
        'mask_rcnn',
        put({'model.test_cfg.rcnn.nms.iou_threshold': 50}),
        'iou_threshold',
    ),
    'overlap below 0': (YOLOX, put({'model.test_cfg.nms.iou_threshold': -0.65}), 'iou_threshold'),
    'unknown nms': (FCOS, put({'model.test_cfg.nms.type': 'nsm'}), "'nsm'"),
    'no threshold of masks': (
        'mask_rcnn',
        put({'model.test_cfg.rcnn.mask_thr_binary': 50}),
        'mask_thr_binary',
    ),
    'no nms': (
        FASTER,
        put({'model.test_cfg.rcnn': dict(_delete_=True, score_thr=0.05, max_per_img=100)}),
        'nms',
    ),
    'no test_cfg': ('retinanet', put({'model.test_cfg': None}), 'test_cfg'),
    'unknown mode': ('semantic_fpn', put({'model.test_cfg.mode': 'sliding'}), 'mode'),
    'windows without size': (
        PSPNET,
        put({'model.test_cfg': dict(_delete_=True, mode='slide', stride=(100, 100))}),
        'crop_size',
    ),
    'windows with gaps': (
        'semantic_fpn',
        put({'model.test_cfg.mode': 'slide', 'model.test_cfg.stride': (256, 256)}),
        'stride',
    ),
    'windows that are numbers': (
        SEGFORMER,
        put({'model.test_cfg': dict(mode='slide', crop_size=128, stride=96)}),
        'crop_size',
    ),
    # Metrics
    'best by an unknown name': (
        'retinanet',
        put({'default_hooks.checkpoint.save_best': 'bbox_mAP'}),
        'coco/bbox_mAP',
    ),
    'best by a metric not measured': (
        'mask_rcnn',
        put(
            {'default_hooks.checkpoint.save_best': 'coco/segm_mAP', 'val_evaluator.metric': 'bbox'}
        ),
        'segm_mAP',
    ),
    'best is least': (
        FASTER,
        put({'default_hooks.checkpoint': dict(save_best='coco/bbox_mAP', rule='less')}),
        'rule',
    ),
    'best by top5 of top1': (
        'classifier',
        put({'default_hooks.checkpoint.save_best': 'accuracy/top5'}),
        'accuracy/top5',
    ),
    'best of maps with a prefix': (
        SEGFORMER,
        put({'default_hooks.checkpoint.save_best': 'iou/mIoU'}),
        'mIoU',
    ),
    'stopped early by an unknown name': (
        'classifier',
        put({'custom_hooks': [dict(type='EarlyStoppingHook', monitor='accuracy', rule='greater')]}),
        'monitor',
    ),
    'unknown metric': ('retinanet', put({'val_evaluator.metric': 'mAP'}), 'metric'),
    'unknown item': (FASTER, put({'val_evaluator.metric_items': ['mAP', 'mAP_90']}), 'mAP_90'),
    'few proposals': (FCOS, put({'val_evaluator.proposal_nums': (100,)}), 'val_evaluator'),
    'unknown iou_metrics': (FCN, put({'val_evaluator.iou_metrics': ['mIOU']}), 'mIOU'),
    'unknown items of labels': (
        RESNET,
        put({'val_evaluator': dict(_delete_=True, type='SingleLabelMetric', items=['precison'])}),
        'precison',
    ),
    'unknown average': (
        MOBILENET,
        put({'val_evaluator': dict(_delete_=True, type='SingleLabelMetric', average='mean')}),
        'average',
    ),
    'metric of several labels': (
        RESNET,
        put({'val_evaluator': dict(_delete_=True, type='AveragePrecision', average='mico')}),
        'average',
    ),
    'two metrics of one name': (
        'classifier',
        put({'val_evaluator': [dict(type='Accuracy', topk=(1,))] * 2}),
        'val_evaluator',
    ),
    'metric of another host': (
        'semantic_fpn',
        put({'val_evaluator': dict(_delete_=True, type='mmdet.VOCMetric')}),
        'val',
    ),
    'more classes than best': (RESNET, put({'val_evaluator.topk': (1, 9)}), 'top'),
    # Training
    'neck of another backbone': (
        'retinanet',
        put({'model.backbone.arch': 'small'}),
        'model.neck',
    ),
    # Schedules
    'never evaluated': ('retinanet', put({'train_cfg.val_interval': 100}), 'val_interval'),
    'never evaluated, iterations': (
        'semantic_fpn',
        put({'train_cfg.val_interval': 16000}),
        'val_interval',
    ),
    'never saved': (FASTER, put({'default_hooks.checkpoint.interval': 50}), 'interval'),
    'evaluated from beyond the end': (YOLOX, put({'train_cfg.val_begin': 400}), 'val_begin'),
    'evaluation that no loop does': ('retinanet', put({'val_cfg': None}), 'val_cfg'),
    'average of the wrong end': (
        'retinanet',
        put({'custom_hooks': [dict(type='EMAHook', momentum=0.9999)]}),
        'momentum',
    ),
}
"""Planted faults: the config, its change, and words that the finding contains."""


CORRECT: dict[str, tuple[str, Change]] = {
    'retinanet': ('retinanet', put({})),
    'mask_rcnn': ('mask_rcnn', put({})),
    'semantic_fpn': ('semantic_fpn', put({})),
    'classifier': ('classifier', put({})),
    'faster': (FASTER, put({})),
    'mask': (MASK, put({})),
    'fcos': (FCOS, put({})),
    'yolox': (YOLOX, put({})),
    'rtmdet': (RTMDET, put({})),
    'fcn': (FCN, put({})),
    'pspnet': (PSPNET, put({})),
    'segformer': (SEGFORMER, put({})),
    'resnet': (RESNET, put({})),
    'mobilenet': (MOBILENET, put({})),
    'atss': ('mmdet/atss/atss_r50_fpn_1x_coco.py', put({})),
    'gfl': ('mmdet/gfl/gfl_r50_fpn_1x_coco.py', put({})),
    'yolov3': ('mmdet/yolo/yolov3_mobilenetv2_8xb24-320-300e_coco.py', put({})),
    'yolof': ('mmdet/yolof/yolof_r50-c5_8xb8-1x_coco.py', put({})),
    'centernet': ('mmdet/centernet/centernet_r18_8xb16-crop512-140e_coco.py', put({})),
    'cascade': ('mmdet/cascade_rcnn/cascade-rcnn_r50_fpn_1x_coco.py', put({})),
    'conditional detr': ('mmdet/conditional_detr/conditional-detr_r50_8xb2-50e_coco.py', put({})),
    'solo': ('mmdet/solo/solo_r50_fpn_1x_coco.py', put({})),
    'rpn': ('mmdet/rpn/rpn_r50_fpn_1x_coco.py', put({})),
    'unet with windows': ('mmseg/unet/unet-s5-d16_fcn_4xb4-40k_drive-64x64.py', put({})),
    'fast scnn': ('mmseg/fastscnn/fast_scnn_8xb4-160k_cityscapes-512x1024.py', put({})),
    'deeplab': (
        'mmseg/deeplabv3plus/deeplabv3plus_r18-d8_4xb2-80k_cityscapes-512x1024.py',
        put({}),
    ),
    'vit': ('mmpretrain/deit/deit-tiny_4xb256_in1k.py', put({})),
    'efficientnet': ('mmpretrain/efficientnet/efficientnet-b0_8xb32_in1k.py', put({})),
    'only scores': ('retinanet', put({'model.test_cfg.score_thr': 0.0})),
    'soft nms': (
        FASTER,
        put({'model.test_cfg.rcnn.nms': dict(type='soft_nms', iou_threshold=0.5, min_score=0.05)}),
    ),
    'nms of all classes together': (
        FASTER,
        put({'model.test_cfg.rcnn.nms': dict(iou_threshold=0.5, class_agnostic=True)}),
    ),
    'recall of regions': (FASTER, put({'val_evaluator.metric': ['bbox', 'proposal']})),
    'classwise': ('mask_rcnn', put({'val_evaluator.classwise': True})),
    'best of two metrics': (
        'mask_rcnn',
        put({'default_hooks.checkpoint.save_best': ['coco/bbox_mAP', 'coco/segm_mAP_50']}),
    ),
    'best is chosen': ('semantic_fpn', put({'default_hooks.checkpoint.save_best': 'auto'})),
    'several metrics of maps': (
        FCN,
        put({'val_evaluator.iou_metrics': ['mIoU', 'mDice', 'mFscore']}),
    ),
    'two metrics': (
        'classifier',
        put(
            {'val_evaluator': [dict(type='Accuracy', topk=(1, 2)), dict(type='SingleLabelMetric')]}
        ),
    ),
    'measured without a file': (
        'retinanet',
        both(
            put({'val_evaluator.ann_file': None}),
            set_step(
                'val',
                'PackDetInputs',
                meta_keys=('img_id', 'ori_shape', 'img_shape', 'scale_factor', 'instances'),
            ),
        ),
    ),
    'by iterations': (
        'retinanet',
        put(
            {
                'train_cfg': dict(
                    _delete_=True, type='IterBasedTrainLoop', max_iters=400, val_interval=100
                ),
                'train_dataloader.sampler': dict(type='InfiniteSampler', shuffle=True),
                'param_scheduler': [
                    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=50),
                    dict(type='MultiStepLR', milestones=[300], by_epoch=False, end=400),
                ],
                'default_hooks.checkpoint': dict(by_epoch=False, interval=100),
            }
        ),
    ),
    'windows larger than images': (
        'semantic_fpn',
        put({'model.test_cfg': dict(mode='slide', crop_size=(512, 512), stride=(512, 512))}),
    ),
    'repeated data': ('retinanet', wrapped('train', 'RepeatDataset', times=3)),
    'rare classes more often': (
        'retinanet',
        wrapped('train', 'ClassBalancedDataset', oversample_thr=0.1),
    ),
    'joined data': ('classifier', wrapped('train', 'ConcatDataset')),
    'evaluated at the end alone': ('retinanet', put({'train_cfg.val_interval': 13})),
    'not evaluated': (
        'retinanet',
        put({'val_dataloader': None, 'val_cfg': None, 'val_evaluator': None}),
    ),
    'images in batches': ('retinanet', put({'val_dataloader.batch_size': 4})),
    'crops of the middle': (
        'classifier',
        both(
            set_step('val', 'Resize', scale=72), inserted('val', 2, type='CenterCrop', crop_size=64)
        ),
    ),
}
"""Configs without a fault."""
