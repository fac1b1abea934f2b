"""Which trainings are started, and how."""

import shlex
from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import config_path
from reproduction import trainings
from reproduction.entries import find_entries
from reproduction.trainings import recipe_command, run_trainings

pytest.importorskip('mmdet')

(RETINANET,) = find_entries(['retinanet_ptnt_s_1x'])


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    (tmp_path / 'ptnt_s_82.0.pth.tar').touch()
    return tmp_path


@pytest.fixture
def started(monkeypatch) -> list[list[str]]:
    """The commands that would have been started; each fails."""
    commands: list[list[str]] = []
    monkeypatch.setattr(trainings.subprocess, 'call', lambda words: commands.append(words) or 3)
    return commands


def test_the_recipe_on_eight_gpus(weights: Path):
    words = shlex.join(recipe_command(RETINANET, Path('run'), weights, gpus=8))
    assert '-m torch.distributed.run --standalone --nproc_per_node 8 ' in words
    config = config_path('retinanet_ptnt_s_1x')
    assert f'train.py --launcher pytorch {config} --work-dir run --pretrained ' in words
    assert words.endswith(f'--pretrained {weights}/ptnt_s_82.0.pth.tar --resume')


def test_other_numbers_scale_the_learning_rate(weights: Path):
    one = recipe_command(RETINANET, Path('run'), weights, gpus=1)
    assert one[1].endswith('tools/train.py') and Path(one[1]).is_file()
    assert one[-1] == '--auto-scale-lr' and '--launcher' not in one
    two = recipe_command(RETINANET, Path('run'), weights, gpus=2)
    assert '--auto-scale-lr' in two and '--launcher' in two


def test_iterations_keep_their_images_on_any_number_of_gpus(weights: Path):
    (entry,) = find_entries(['upernet_ptnt_s_80k_cityscapes'])
    commands = {
        gpus: shlex.join(recipe_command(entry, Path('run'), weights, gpus)) for gpus in (1, 2, 4, 8)
    }
    for gpus, batch in ((1, 8), (2, 4), (8, 1)):
        assert f' --cfg-options train_dataloader.batch_size={batch}' in commands[gpus]
    assert '--cfg-options' not in commands[4], 'the number that the recipe is for'
    assert not any('--auto-scale-lr' in words for words in commands.values())
    with pytest.raises(UserError, match='--gpus 3: .* 8 images .*: expected one of 1, 2, 4, 8$'):
        recipe_command(entry, Path('run'), weights, gpus=3)


def test_missing_weights_say_who_has_them(tmp_path: Path):
    with pytest.raises(UserError, match=r'ptnt_s_82\.0\.pth\.tar is missing: .*Backbones'):
        recipe_command(RETINANET, Path('run'), tmp_path, gpus=8)


def test_the_first_failure_ends_it(started, tmp_path: Path):
    commands = {tmp_path / name: [name] for name in ('first', 'second')}
    with pytest.raises(UserError, match='first stopped with exit status 3; it ended before'):
        run_trainings(commands)
    assert started == [['first']]


def test_a_failure_names_the_last_log(started, tmp_path: Path):
    for timestamp in ('20260102_120000', '20260101_120000'):
        (tmp_path / timestamp).mkdir()
        (tmp_path / timestamp / f'{timestamp}.log').touch()
    with pytest.raises(UserError, match='its log is .*20260102_120000.log'):
        run_trainings({tmp_path: ['train']})
