"""The rules that choose a recipe from the statistics of a data set: one row each.

docs/data.md has the same rows, and the comments of a config contain the deciding numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ptnt_mm.project import choices
from ptnt_mm.project.choices import Choice, Recipe
from ptnt_mm.project.facts import Facts


@dataclass(frozen=True)
class Rule:
    """A rule that chooses one setting.

    Attributes:
        setting: Its name; for most, that in the config.
        rule: Its effect, for the docs.
        reason: Why, for the docs.
        choose: Makes the choice; later rules see the choices of earlier ones.
    """

    setting: str
    rule: str
    reason: str
    choose: Callable[[Facts, Recipe], Choice]


def choose_recipe(facts: Facts) -> dict[str, Choice]:
    """Apply all rules to the figures of a data set."""
    recipe: dict[str, Choice] = {}
    for rule in RULES:
        recipe[rule.setting] = rule.choose(facts, recipe)
    return recipe


RULES = (
    Rule(
        'width',
        'Neck and head are 64 channels wide below 5,000 images, else 256.',
        'The published 256 channels take most of the time for small images, and learn no more from '
        'a few thousand of them.',
        choices.width,
    ),
    Rule(
        'model',
        'Boxes get RetinaNet, objects with masks Mask R-CNN, class masks Semantic FPN, class '
        'folders a classifier.',
        'The labels determine the task. These heads are simple and well known.',
        choices.model,
    ),
    Rule(
        'size',
        'The longer side at which one object in ten, or half of a class of 10 objects or more, is '
        'below 21 pixels, or 8 for masks; 320 to 1333, and at most twice that of the images. '
        'Without objects: the size of the images, 320 to 1024. Classifiers: the shorter side, 64 '
        'to 224.',
        'RetinaNet finds objects down to two thirds of its smallest usual anchor, which has 32 '
        'pixels. Mask R-CNN needs two cells of the finest map, which has one for 4 pixels. Larger '
        'images take longer and add no information.',
        choices.size,
    ),
    Rule(
        'crop',
        'Segmenters train on squares of the shorter side, at most 512.',
        'A batch needs one size, and 512 is the usual one.',
        choices.crop,
    ),
    Rule(
        'anchors',
        'From 32 pixels; from 16 where one object in ten, or half of such a class, is below 20 '
        'pixels; for masks from 8 where it is below 10.',
        'An anchor of 32 pixels overlaps too little with an object that is half as wide, so '
        'such objects are hardly ever found. The larger anchors stay.',
        choices.anchors,
    ),
    Rule(
        'max_per_img',
        'At most 100 detections per image, or 1.5 times the largest number of objects in one.',
        'Objects beyond the limit would count as missed.',
        choices.max_per_img,
    ),
    Rule(
        'effective batch',
        '2 images a step below 500 images, 4 below 5,000, 8 below 20,000, else 16; classifiers 16 '
        'times as many, with at least two steps an epoch.',
        'A small data set has few steps per epoch, and the model learns more from two steps of 2 '
        'images than from one step of 4.',
        choices.effective_batch,
    ),
    Rule(
        'batch_size',
        'The effective batch, halved until a step takes at most 80 % of the free memory.',
        'A training step is tried on the CPU, and the memory that it keeps is counted. A GPU may '
        'need more: PyramidTNT recomputes less there.',
        choices.batch_size,
    ),
    Rule(
        'norm',
        'From random initialisation, a PyramidTNT or ResNet has GroupNorm below 8 images a step, '
        'else BatchNorm.',
        'In steps of 2, the nuclei of [Results](results.md#batchnorm-or-groupnorm) reach a mIoU of '
        "77 with BatchNorm and 84 with GroupNorm; in steps of 8, the demo's segmenter reaches 72 "
        'and 62.',
        choices.norm,
    ),
    Rule(
        'accumulation',
        'As many steps as make up the effective batch.',
        'The learning rate is for the effective batch, which may not fit into memory.',
        choices.accumulation,
    ),
    Rule(
        'epochs',
        '12,000 images seen, at least 12 epochs and at most 300; half as many images from '
        'pretrained weights. Classifiers: 30,000 images, at least 30 epochs.',
        'Learning takes iterations, even with few images. COCO is trained for 12 epochs.',
        choices.epochs,
    ),
    Rule(
        'augmentation',
        'Mirroring always; sizes of 75 to 133 % where each image is seen 30 times or more, colours '
        'from 100 times. Classifiers: crops always, colours below 1,000 images, mixed images from '
        '10,000.',
        'An image that is seen only a few times needs little augmentation: with more, the blood '
        'cells of [Results](results.md) reach a lower AP after 10 epochs. COCO is trained with '
        'mirroring for 12 epochs, and with many sizes for 36.',
        choices.augmentation,
    ),
    Rule(
        'warm-up',
        '50 iterations, or a tenth of a run of fewer than 500.',
        'A longer warm-up would take up most of a short run.',
        choices.warm_up,
    ),
    Rule(
        'lr',
        '1e-3 from random initialisation, 1e-4 from pretrained weights, for 4 images a step (32 '
        'for classifiers); with the square root of the batch, at most 2e-3.',
        'For AdamW, the rate grows with the square root of the batch. Pretrained weights need '
        'small steps.',
        choices.lr,
    ),
)
"""All rules, in the order in which they are applied."""
