"""Faults in the settings of validation and test, and unusual but correct settings.

They were written before the rules and the evaluation of an image that look for them.
"""

from collections.abc import Callable

from mmengine.config import Config

from ptnt_mm.utils.findings import Severity

from .settings_demo import both, drop_meta, joined, put, removed, set_step

Change = Callable[[Config], object]

FASTER = 'mmdet/faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
FCOS = 'mmdet/fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py'
YOLOX = 'mmdet/yolox/yolox_tiny_8xb8-300e_coco.py'
RTMDET = 'mmdet/rtmdet/rtmdet_tiny_8xb32-300e_coco.py'
FCN = 'mmseg/fcn/fcn_r18-d8_4xb2-80k_cityscapes-512x1024.py'
SEGFORMER = 'mmseg/segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py'
RESNET = 'mmpretrain/resnet/resnet18_8xb32_in1k.py'
PIPELINE = 'val_dataloader.dataset.pipeline'
ERROR, WARNING = Severity.ERROR, Severity.WARNING


def schedules_by_optimizer(config: Config) -> None:
    """As MMEngine takes them with an OptimWrapperDict."""
    config.param_scheduler = dict(one=list(config.param_scheduler), other=[])


FAULTS: dict[str, tuple[str, Change, Severity, str, str]] = {
    # Meta keys
    'no scale_factor': (
        'retinanet', drop_meta('val', 'scale_factor'),
        ERROR, PIPELINE + '[3].meta_keys', "'scale_factor'",
    ),
    'no img_id': (
        'retinanet', drop_meta('val', 'img_id'),
        ERROR, PIPELINE + '[3].meta_keys', "'img_id'",
    ),
    'no ori_shape for masks': (
        'mask_rcnn', drop_meta('val', 'ori_shape'),
        ERROR, PIPELINE + '[3].meta_keys', "'ori_shape'",
    ),
    # The evaluation stops at the first of them.
    'no two keys': (
        RTMDET, drop_meta('val', 'img_id', 'scale_factor'),
        ERROR, PIPELINE + '[4].meta_keys', "'scale_factor'",
    ),
    'no ori_shape, maps': (
        'semantic_fpn', set_step('val', 'PackSegInputs', meta_keys=('img_path', 'img_shape')),
        ERROR, PIPELINE + '[3].meta_keys', "'ori_shape'",
    ),
    'no flip_direction in TTA': (
        'retinanet', drop_meta('tta', 'flip_direction'),
        WARNING, 'tta_pipeline[1].transforms[3][0].meta_keys', "'flip_direction'",
    ),
    # Pipelines
    # It was thought to be correct.
    'SSD, which mmdet 3.3.0 cannot evaluate': (
        'mmdet/ssd/ssdlite_mobilenetv2-scratch_8xb24-600e_coco.py', put({}),
        ERROR, 'model.bbox_head', "'loss_cls'",
    ),
    'no instances for a metric without a file': (
        'retinanet', put({'val_evaluator.ann_file': None}),
        ERROR, PIPELINE + '[3].meta_keys', "'instances'",
    ),
    'no packing': (RESNET, removed('val', 'PackInputs'), ERROR, 'model', "'inputs'"),
    'no loading': (
        FASTER, removed('val', 'LoadImageFromFile'),
        ERROR, PIPELINE + '[0]', "'scale_factor'",
    ),
    'grey in validation': (
        'retinanet', set_step('val', 'LoadImageFromFile', color_type='grayscale'),
        ERROR, 'model.data_preprocessor', 'out of bounds',
    ),
    'sizes that make no batch': (
        'classifier', set_step('val', 'Resize', scale=(64, -1), keep_ratio=True),
        ERROR, PIPELINE + '[1]', 'Resize',
    ),
    'maps of several sizes in a batch': (
        FCN, put({'val_dataloader.batch_size': 4}),
        ERROR, 'model.data_preprocessor', 'SegDataPreProcessor',
    ),
    'a loader of images that is not installed': (
        'retinanet', set_step('val', 'LoadImageFromFile', imdecode_backend='turbojpeg'),
        ERROR, PIPELINE + '[0]', 'LoadImageFromFile',
    ),
    # Post-processing
    'unknown nms': (
        FCOS, put({'model.test_cfg.nms.type': 'nsm'}),
        ERROR, 'model.bbox_head', "'nsm'",
    ),
    'no nms': (
        FASTER, put({'model.test_cfg.rcnn': dict(_delete_=True, score_thr=0.05, max_per_img=100)}),
        ERROR, 'model.roi_head.bbox_head', "'nms'",
    ),
    # Metrics
    'best by an unknown name': (
        'retinanet', put({'default_hooks.checkpoint.save_best': 'bbox_mAP'}),
        ERROR, 'default_hooks.checkpoint.save_best', "'bbox_mAP'",
    ),
    'best by a metric not measured': (
        'mask_rcnn',
        put(
            {'default_hooks.checkpoint.save_best': 'coco/segm_mAP', 'val_evaluator.metric': 'bbox'}
        ),
        ERROR, 'default_hooks.checkpoint.save_best', "'coco/segm_mAP'",
    ),
    'best is least': (
        FASTER, put({'default_hooks.checkpoint': dict(save_best='coco/bbox_mAP', rule='less')}),
        WARNING, 'default_hooks.checkpoint.rule', "'less'",
    ),
    'stopped early by an unknown name': (
        'classifier',
        put({'custom_hooks': [dict(type='EarlyStoppingHook', monitor='accuracy', rule='greater')]}),
        ERROR, 'custom_hooks[0].monitor', "'accuracy'",
    ),
    'unknown metric': (
        'retinanet', put({'val_evaluator.metric': 'mAP'}),
        ERROR, 'val_evaluator', 'mAP',
    ),
    'unknown item': (
        FASTER, put({'val_evaluator.metric_items': ['mAP', 'mAP_90']}),
        ERROR, 'val_evaluator', 'mAP_90',
    ),
    'few proposals': (
        FCOS, put({'val_evaluator.proposal_nums': (100,)}),
        ERROR, 'val_evaluator', 'CocoMetric',
    ),
    'metric of several labels': (
        RESNET,
        put({'val_evaluator': dict(_delete_=True, type='AveragePrecision', average='mico')}),
        ERROR, 'val_evaluator', 'AveragePrecision',
    ),
    'two metrics of one name': (
        'classifier', put({'val_evaluator': [dict(type='Accuracy', topk=(1,))] * 2}),
        ERROR, 'val_evaluator', 'accuracy/top1',
    ),
    'metric of another host': (
        'semantic_fpn', put({'val_evaluator': dict(_delete_=True, type='mmdet.VOCMetric')}),
        ERROR, 'val_evaluator', "'gt_instances'",
    ),
    'more classes than best': (
        RESNET, put({'val_evaluator.topk': (1, 9)}),
        ERROR, 'val', 'the best 9 classes',
    ),
    # Training
    'neck of another backbone': (
        'retinanet', put({'model.backbone.arch': 'small'}),
        ERROR, 'model.neck.in_channels', '[128, 256, 512, 512] channels',
    ),
}  # fmt: skip
"""Planted faults: the config, its change; and the finding: severity, subject, a named value."""


CORRECT: dict[str, tuple[str, Change]] = {
    'mask_rcnn': ('mask_rcnn', put({})),
    'classifier': ('classifier', put({})),
    'fcos': (FCOS, put({})),
    'yolox': (YOLOX, put({})),
    'rtmdet': (RTMDET, put({})),
    'segformer': (SEGFORMER, put({})),
    'yolov3': ('mmdet/yolo/yolov3_mobilenetv2_8xb24-320-300e_coco.py', put({})),
    'centernet': ('mmdet/centernet/centernet_r18_8xb16-crop512-140e_coco.py', put({})),
    'conditional detr': ('mmdet/conditional_detr/conditional-detr_r50_8xb2-50e_coco.py', put({})),
    'solo': ('mmdet/solo/solo_r50_fpn_1x_coco.py', put({'model.backbone.norm_eval': False})),
    'unet with windows': ('mmseg/unet/unet-s5-d16_fcn_4xb4-40k_drive-64x64.py', put({})),
    'vit': ('mmpretrain/deit/deit-tiny_4xb256_in1k.py', put({})),
    'soft nms': (
        FASTER,
        put({'model.test_cfg.rcnn.nms': dict(type='soft_nms', iou_threshold=0.5, min_score=0.05)}),
    ),
    'best of two metrics': (
        'mask_rcnn',
        put({'default_hooks.checkpoint.save_best': ['coco/bbox_mAP', 'coco/segm_mAP_50']}),
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
    'schedules of two optimizers': ('retinanet', schedules_by_optimizer),
    'synchronised norms': (FASTER, put({'model.backbone.norm_cfg': dict(type='MMSyncBN')})),
    'joined data': ('classifier', joined('train')),
    'not evaluated': (
        'retinanet',
        put({'val_dataloader': None, 'val_cfg': None, 'val_evaluator': None}),
    ),
    'images in batches': ('retinanet', put({'val_dataloader.batch_size': 4})),
}
"""Configs without a fault."""
