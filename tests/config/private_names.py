"""The private names of MMEngine, the hosts and torch that the package uses: read it to upgrade.

`test_private_names.py` looks each of them up in the installed versions, and finds those that are
used but not listed. Names that only stand in checkpoint files are in
`ptnt_mm.weights.reader.objects`.
"""

PRIVATE = {
    # Configs
    'mmengine.config:Config': {
        '_get_cfg_path': 'replaced: finds bases of hosts quickly, and mmseg:: ones of its fork',
        '_get_base_files': 'copies a config with its bases',
    },
    'mmengine.registry:build_from_cfg': {
        '_scope_': 'a key that names the scope of a type',
        'obj_cls': 'the class that refused an argument',
        'args': 'whether the config has the argument',
    },
    # The runner
    'mmengine.runner:Runner': {
        '_load_from': 'names the checkpoint that is refused',
        '_resume': 'what in a checkpoint has to fit',
        '_train_loop': 'its data set, if the loop has been built',
        '_val_loop': 'as _train_loop',
        '_test_loop': 'as _train_loop',
        '_randomness_cfg': 'seeds the loader as the runner does',
    },
    'mmengine.runner:IterBasedTrainLoop': {
        '_decide_current_val_interval': 'called in our loop, as in the original',
    },
    'mmengine.runner.checkpoint': {
        '_load_checkpoint_to_model': 'copies weights that were read already',
    },
    'mmengine.hooks:CheckpointHook': {
        '_save_checkpoint_with_step': 'overridden: removes old files last',
        '_publish_model': 'overridden: not for a best one that is unknown',
        '_save_best_checkpoint': 'overridden: checks the metric, removes old files last',
        '_default_greater_keys': 'which metrics are better if greater',
    },
    'mmengine.optim.scheduler.param_scheduler:_ParamScheduler': {
        '_global_step': 'state that resuming keeps, of a schedule by a metric',
        '_last_value': 'as _global_step',
    },
    # Models and data
    'mmengine.model:BaseModel': {
        '_run_forward': 'the loss of a tried training step',
    },
    'mmengine.model:ImgDataPreprocessor': {
        '_enable_normalize': 'whether it normalises',
        '_channel_conversion': 'whether it takes BGR',
    },
    'mmengine.dataset:Compose.__call__': {
        't': 'the transform that failed',
    },
    'mmengine.dataset:BaseDataset': {
        '_copy_without_annotation': 'its default memo, which has to be emptied',
    },
    # mmdet and mmpretrain
    'mmdet.evaluation:CocoMetric': {
        '_coco_api': 'set: the annotations of one image',
    },
    'mmdet.datasets.transforms:LoadAnnotations': {
        '_process_masks': 'whether a mask loads',
    },
    'mmdet.models.dense_heads.base_dense_head:BaseDenseHead': {
        '_predict_by_feat_single': 'whether a head can be exported',
    },
    'mmdet.models.dense_heads.rtmdet_ins_head:RTMDetInsHead': {
        '_mask_predict_by_feat_single': 'as _predict_by_feat_single',
    },
    'mmdet.models:DETR': {
        '_init_layers': 'overridden: adds the position encoding',
    },
    'mmdet.models:DetTTAModel': {
        '_merge_single_sample': 'overridden: keeps masks',
    },
    'mmdet.visualization:DetLocalVisualizer': {
        '_draw_instances': 'overridden: draws objects as we do',
    },
    'mmpretrain.datasets.utils:download_and_extract_archive': {
        'url': 'the address of a data set that cannot be downloaded',
        'download_root': 'the folder that its archive belongs in',
    },
    # torch and torchvision
    'torch.utils.data:DataLoader': {
        '_iterator': 'reset: ends persistent workers',
    },
    'torch.nn.modules.batchnorm': {
        '_BatchNorm': 'the base class of all batch norms',
    },
    'torch.nn:Module': {
        '_metadata': 'versions of modules, kept with a state dict',
    },
    'torch': {
        '_check': 'an assumption of an exported graph',
        '_fused_sdp_choice': 'which widths the kernel of an attention takes',
        '_C': 'the module of the next name',
    },
    'torch._C': {
        '_are_functorch_transforms_active': 'where custom operators are refused',
        '_get_dispatch_mode': 'whether tensors may be stand-ins: of a fake or a tracing mode',
        '_TorchDispatchModeKey': 'the kinds of modes',
    },
    'torch.ops:aten': {
        '_assert_scalar': 'removed from exported programs',
    },
    'torch.ops:torchvision': {
        '_deform_conv2d_backward': 'the gradient of an operator',
        '_roi_align_backward': 'as _deform_conv2d_backward',
        '_roi_pool_backward': 'as _deform_conv2d_backward',
    },
}
"""What each is needed for, by owner and name.

An owner is a class, function or module, as `pkgutil.resolve_name` finds it; a name is that of an
attribute of the owner or of its instances, of a local variable, or a key.
"""
