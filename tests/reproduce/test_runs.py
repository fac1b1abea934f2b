"""The commands for the model zoo."""

import shlex
from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.zoo import get_config
from reproduction.entries import find_entries
from reproduction.runs import recipe_command


def command(name: str, gpus: int) -> str:
    (entry,) = find_entries([name])
    return shlex.join(recipe_command(entry, Path('pretrained'), gpus))


def test_epochs_scale_the_learning_rate_on_other_gpus_than_the_recipes():
    rest = '--pretrained pretrained/ptnt_s_82.0.pth.tar --resume'
    start = 'torchrun --standalone --nproc_per_node 8 -m ptnt_mm train retinanet_ptnt_s_1x'
    assert command('retinanet_ptnt_s_1x', 8) == f'{start} --launcher pytorch {rest}'
    single = f'ptnt train retinanet_ptnt_s_1x {rest} --auto-scale-lr'
    assert command('retinanet_ptnt_s_1x', 1) == single


def test_epochs_keep_the_batch_on_more_gpus_that_divide_it():
    assert command('retinanet_ptnt_s_1x', 16).endswith(' train_dataloader.batch_size=1')
    for name, gpus in (('retinanet_ptnt_s_1x', 32), ('retinanet_ptnt_s_1x_low_mem', 16)):
        assert command(name, gpus).endswith(' --auto-scale-lr')


@pytest.mark.parametrize(
    'name', ['retinanet_ptnt_s_1x_low_mem', 'dino_ptnt_s_1x', 'upernet_ptnt_s_80k_cityscapes']
)
def test_the_recipes_gpus_have_the_batch_of_its_learning_rate(name: str):
    (entry,) = find_entries([name])
    config = get_config(name)
    steps = config.optim_wrapper.get('accumulative_counts', 1)
    batch = entry.gpus * config.train_dataloader.batch_size * steps
    assert batch == config.auto_scale_lr.base_batch_size


def test_a_pretraining_starts_from_random_initialisation():
    assert '--pretrained' not in command('classifier_ptnt_ti_300e_imagenet', 1)


def test_iterations_keep_their_images_on_any_number_of_gpus():
    for gpus, batch_size in ((1, 8), (2, 4), (8, 1)):
        printed = command('upernet_ptnt_s_80k_cityscapes', gpus)
        assert printed.endswith(f' --cfg-options train_dataloader.batch_size={batch_size}')
    assert '--cfg-options' not in command('upernet_ptnt_s_80k_cityscapes', 4)
    with pytest.raises(UserError, match='--gpus 3: .* 8 images'):
        command('upernet_ptnt_s_80k_cityscapes', 3)
