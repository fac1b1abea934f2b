"""The rules: one row for each kind of setting that is easily wrong.

No rule fires on a config that mmdet, mmseg or mmpretrain publish, unless that config is wrong.
"""

from collections.abc import Mapping
from logging import getLevelNamesMapping

from ptnt_mm.check.rule_predicates import (
    SMALL,
    above,
    after_the_end,
    augments,
    below,
    below_neg_iou_thr,
    counts_epochs_of_iterations,
    ends_before_it_begins,
    equal_to,
    evaluates_often,
    in_epochs_by_iteration,
    is_alone,
    is_no_pair,
    is_small,
    keeps_other_ratio,
    lacks_test_mode,
    leaves_gaps,
    never_due,
    not_a_count,
    not_ascending,
    outside,
    saves_often,
    windows_lack,
    without_workers,
)  # fmt: skip
from ptnt_mm.check.rules import Rule
from ptnt_mm.config.settings import type_name
from ptnt_mm.utils.findings import Severity

ERROR, WARNING = Severity.ERROR, Severity.WARNING

KEYS = (
    'model', 'tta_model', 'train_dataloader', 'val_dataloader', 'val_cfg', 'val_evaluator',
    'test_dataloader', 'test_cfg', 'test_evaluator', 'train_cfg', 'optim_wrapper',
    'param_scheduler', 'default_hooks', 'custom_hooks', 'log_level',
)  # fmt: skip
"""The keys of a config that rules are about."""

_TESTING = ('model.test_cfg.*', 'tta_model.tta_cfg.*', 'model.train_cfg.*')
_EVALUATING = ('val_dataloader.dataset*', 'test_dataloader.dataset*')
# Schedulers whose shape depends on the time from begin to end.
_SHAPED = ('CosineAnnealingLR', 'CosineAnnealingMomentum', 'CosineAnnealingParamScheduler',
           'LinearLR', 'PolyLR', 'QuadraticWarmupLR')  # fmt: skip


RULES = (
    # Post-processing
    Rule('model.test_cfg', equal_to(None), ERROR, 'is None: heads need it to select detections',
         'write test_cfg=dict(score_thr=0.05, max_per_img=100, ...)', scopes=('mmdet',)),
    Rule(tuple(f'{path}max_per_img' for path in _TESTING), below(1, but=(-1,)), ERROR,
         'is {value}: nothing is ever detected', 'write the number to keep, such as 100'),
    Rule(tuple(f'{path}nms_pre' for path in _TESTING), below(1, but=(-1,)), ERROR,
         'is {value}', 'write the number of candidates per level, such as 1000; -1 keeps all'),
    Rule('model.test_cfg.*score_thr', outside(0, 0.999999), ERROR,
         'is {value}: scores are between 0 and 1', 'write 0.05 for 5 %'),
    Rule('model.test_cfg.*mask_thr_binary', above(0.999999), ERROR,
         'is {value}: probabilities are between 0 and 1, and no mask has a pixel', 'write 0.5'),
    Rule(tuple(f'{path}iou_{end}' for path in _TESTING for end in ('threshold', 'thr')),
         outside(0, 1), ERROR, 'is {value}: overlaps are between 0 and 1', 'write 0.5 for 50 %'),
    Rule('model.test_cfg.mode', lambda s: s.value not in ('slide', 'whole', 'slide_flip'), ERROR,
         "is {value!r}, expected 'slide' or 'whole'", scopes=('mmseg',)),
    Rule('model.test_cfg.mode', windows_lack, ERROR, "is 'slide' without {found}",
         'write both in pixels: crop_size=(512, 512), stride=(341, 341)', scopes=('mmseg',)),
    Rule(('model.test_cfg.crop_size', 'model.test_cfg.stride'), is_no_pair, ERROR,
         'is {value}, expected (height, width) in pixels', scopes=('mmseg',)),
    Rule('model.test_cfg.stride', leaves_gaps, ERROR,
         'is {value}: {found} leave gaps between them', 'make it smaller than crop_size',
         scopes=('mmseg',)),
    # Assignment and losses
    Rule(('model.train_cfg.*pos_iou_thr', 'model.train_cfg.*neg_iou_thr',
          'model.train_cfg.*min_pos_iou'), outside(0, 1), ERROR,
         'is {value}: overlaps are between 0 and 1', 'write 0.5 for 50 %'),
    Rule('model.train_cfg.*pos_iou_thr', below_neg_iou_thr, ERROR,
         'is {value}, less than neg_iou_thr={found}',
         'a box between the two would be both positive and negative'),
    Rule('model.train_cfg.*sampler.num', below(1), ERROR, 'is {value}: no box is used in training'),
    Rule('model.train_cfg.*sampler.pos_fraction', outside(0.000001, 1), ERROR,
         'is {value}, expected a share above 0 and up to 1'),
    Rule('model.*loss_weight', below(0), ERROR, 'is {value}: the model would learn the opposite'),
    Rule('model.*loss_weight', equal_to(0), WARNING, 'is 0: this loss has no effect',
         'remove the loss, or set a weight above 0'),
    Rule(('model.*drop_path_rate', 'model.*drop_rate', 'model.*dropout_ratio'), above(0.999), ERROR,
         'is {value}, expected a share from 0 to less than 1'),
    # The optimizer
    Rule('optim_wrapper.optimizer.weight_decay', below(0), ERROR, 'is {value}: weights would grow'),
    Rule('optim_wrapper.optimizer.weight_decay', above(0.999999), WARNING,
         'is {value}: published recipes use 0.0001 to 0.3'),
    Rule('optim_wrapper.optimizer.momentum', outside(0, 0.999999), ERROR,
         'is {value}, expected a share from 0 to less than 1', 'published recipes use 0.9'),
    Rule('optim_wrapper.clip_grad.max_norm', below(1e-9), ERROR,
         'is {value}: all gradients would become 0',
         'write the largest norm of gradients, such as 1.0'),
    Rule('optim_wrapper.clip_grad.clip_value', below(1e-9), ERROR,
         'is {value}: all gradients would become 0'),
    Rule('optim_wrapper.accumulative_counts', below(1), ERROR, 'is {value}, expected 1 or more'),
    # Loaders
    Rule('*_dataloader.num_workers', below(0), ERROR, 'is {value}',
         'write 0 to load without workers'),
    Rule('*_dataloader.batch_size', below(1), ERROR, 'is {value}, expected 1 or more'),
    Rule(('*_dataloader.persistent_workers', '*_dataloader.prefetch_factor'), without_workers,
         ERROR, 'is {value} with num_workers=0, which torch refuses', 'remove it'),
    Rule('train_dataloader.sampler.shuffle', equal_to(False), WARNING,
         'is False: images come in the same order each time', 'write True',
         scopes=('mmdet', 'mmseg', 'mmpretrain'), kinds=('DefaultSampler', 'InfiniteSampler')),
    Rule(('val_dataloader.drop_last', 'test_dataloader.drop_last'), equal_to(True), WARNING,
         'is True: the images of the last batch may not be evaluated', 'remove it'),
    Rule(('val_dataloader.sampler.type', 'test_dataloader.sampler.type'),
         lambda s: type_name(s.beside) == 'InfiniteSampler', ERROR,
         'is InfiniteSampler: evaluation would never end',
         "write sampler=dict(type='DefaultSampler', shuffle=False)"),
    # Pipelines
    Rule(tuple(f'{path}.pipeline[*]' for path in _EVALUATING), augments, WARNING,
         '{found} changes images at random: the scores would be for altered images',
         'use it only in training'),
    Rule(tuple(f'{path}.pipeline[*].prob' for path in ('train_dataloader*', *_EVALUATING)),
         outside(0, 1), ERROR, 'is {value}: probabilities are between 0 and 1'),
    Rule('train_dataloader.dataset*.pipeline[*]',
         lambda s: isinstance(s.value, Mapping) and type_name(s.value) == 'TestTimeAug', ERROR,
         'TestTimeAug is for testing', 'remove it from training'),
    Rule(('train_dataloader.dataset*.pipeline[*].scale',
          'train_dataloader.dataset*.pipeline[*].crop_size'), is_small, WARNING,
         f'is {{value}} pixels: images smaller than {SMALL} show too little', 'write a larger size',
         kinds=('Resize', 'RandomCrop', 'RandomResizedCrop', 'CenterCrop', 'RandomResize')),
    Rule(tuple(f'{path}.keep_ratio' for path in _EVALUATING), keeps_other_ratio, WARNING,
         'is {value}, but {found} in training: objects have different shapes there',
         'write {found}'),
    Rule(_EVALUATING, lacks_test_mode, WARNING, 'has no test_mode=True: images without an object '
         'may be skipped, and others may take their place', 'write test_mode=True',
         scopes=('mmdet',)),
    # Length and schedule
    Rule(('val_*', 'test_*'), is_alone, ERROR, 'is None, unlike {found}: MMEngine needs all three',
         'set all, or none'),
    Rule(('train_cfg.max_epochs', 'train_cfg.max_iters', 'train_cfg.val_interval'), not_a_count,
         ERROR, 'is {value!r}, expected an integer above 0'),
    Rule('train_cfg.val_interval', evaluates_often, WARNING,
         'is {value}: training counts iterations, and would be interrupted every few iterations'),
    Rule('train_cfg.val_interval', never_due, WARNING,
         'is {value}, but {found}: it is evaluated once, at the end'),
    Rule('train_cfg.val_begin', never_due, WARNING,
         'is {value}, but {found}: it is never evaluated'),
    Rule('default_hooks.checkpoint.interval', after_the_end, WARNING,
         'is {value}, but {found}: if training stops before, nothing is saved'),
    Rule('default_hooks.checkpoint.interval', below(1, but=(-1,)), ERROR,
         'is {value}, expected 1 or more', '-1 saves only the last'),
    Rule('default_hooks.checkpoint', counts_epochs_of_iterations, WARNING,
         'counts epochs, but training counts iterations: it saves once, at the end',
         'write by_epoch=False, and interval in iterations'),
    Rule('default_hooks.checkpoint', saves_often, WARNING,
         'has by_epoch=False, and saves every {value[interval]} iterations', 'write by_epoch=True'),
    Rule('default_hooks.logger.interval', below(1), ERROR, 'is {value}, expected 1 or more'),
    Rule(('param_scheduler', 'param_scheduler[*]'), counts_epochs_of_iterations, ERROR,
         'counts epochs, stated or by default, but training counts iterations: it would never step',
         'write by_epoch=False, and begin, end and milestones in iterations'),
    Rule(('param_scheduler', 'param_scheduler[*]'), in_epochs_by_iteration, WARNING,
         'has by_epoch=False and is over after {found}', 'write by_epoch=True'),
    Rule(('param_scheduler.end', 'param_scheduler[*].end', 'param_scheduler*.T_max',
          'param_scheduler*.total_iters'), after_the_end, WARNING,
         'is {value}, but {found}: the schedule is cut off',
         kinds=_SHAPED),
    Rule('param_scheduler*.milestones[*]', after_the_end, WARNING,
         'is {value}, but {found}: it is never reached'),
    Rule('param_scheduler*.milestones', not_ascending, ERROR,
         'is {value}, expected ascending numbers'),
    Rule(('param_scheduler.end', 'param_scheduler[*].end'), ends_before_it_begins, ERROR,
         'is {value}, not after its begin'),
    Rule('log_level', lambda s: str(s.value) not in (*getLevelNamesMapping(), 'None'), ERROR,
         'is {value!r}, expected INFO, WARNING, ERROR or DEBUG'),
    Rule('custom_hooks[*].momentum', above(0.5), WARNING,
         'is {value}: in MMEngine it is the share of the new weights',
         'write 0.0002 for a decay of 0.9998',
         kinds=('EMAHook',)),
)  # fmt: skip
"""All rules, in the order of a config."""
