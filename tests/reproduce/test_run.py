"""Which trainings are started, and how."""

import shlex
from pathlib import Path

import pytest
from logs import evaluation, write_log

from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import config_path
from reproduction import run
from reproduction.entries import choose
from reproduction.run import Place, command

pytest.importorskip('mmdet')

RETINANET, MASK_RCNN = CHOSEN = choose(['retinanet_ptnt_s_1x', 'mask_rcnn_ptnt_s_1x'])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / 'ptnt_s_82.0.pth.tar').touch()
    return Place(tmp_path / 'work_dirs', tmp_path, gpus=8)


@pytest.fixture
def started(monkeypatch) -> list[list[str]]:
    """The commands that would have been started; each fails."""
    commands: list[list[str]] = []
    monkeypatch.setattr(run.subprocess, 'call', lambda words: commands.append(words) or 3)
    return commands


def test_the_recipe_on_eight_gpus(place: Place):
    words = shlex.join(command(RETINANET, place))
    assert '-m torch.distributed.run --standalone --nproc_per_node 8 ' in words
    assert f'train.py {config_path("retinanet_ptnt_s_1x")} --work-dir ' in words
    assert f'--pretrained {place.weights}/ptnt_s_82.0.pth.tar --resume' in words
    assert words.endswith('--launcher pytorch') and '--auto-scale-lr' not in words


def test_other_numbers_scale_the_learning_rate(place: Place):
    one = command(RETINANET, Place(place.work_dirs, place.weights, gpus=1))
    assert one[1].endswith('tools/train.py') and Path(one[1]).is_file()
    assert one[-1] == '--auto-scale-lr' and '--launcher' not in one
    two = command(RETINANET, Place(place.work_dirs, place.weights, gpus=2))
    assert '--auto-scale-lr' in two and '--launcher' in two


def test_iterations_keep_their_images_on_any_number_of_gpus(place: Place):
    (entry,) = choose(['upernet_ptnt_s_80k_cityscapes'])
    commands = {
        gpus: shlex.join(command(entry, Place(place.work_dirs, place.weights, gpus)))
        for gpus in (1, 2, 4, 8)
    }
    for gpus, batch in ((1, 8), (2, 4), (8, 1)):
        assert f' --cfg-options train_dataloader.batch_size={batch}' in commands[gpus]
    assert '--cfg-options' not in commands[4], 'the number that the recipe is for'
    assert not any('--auto-scale-lr' in words for words in commands.values())
    with pytest.raises(UserError, match='--gpus 3: .* 8 images .*: expected one of 1, 2, 4, 8$'):
        command(entry, Place(place.work_dirs, place.weights, gpus=3))


def test_finished_ones_are_left(place: Place):
    write_log(place.work_dirs / RETINANET.name, '20260101_120000', evaluation(12, 0.4))
    told: list[str] = []
    commands = run.unfinished(CHOSEN, place, told.append)
    assert commands == {MASK_RCNN: command(MASK_RCNN, place)}
    assert told == [
        '# retinanet_ptnt_s_1x: epoch 12 of 12, box AP 40.0',
        '# mask_rcnn_ptnt_s_1x: nothing yet',
    ]


def test_the_first_failure_ends_it(place: Place, started):
    commands = {entry: [entry.name] for entry in CHOSEN}
    with pytest.raises(UserError, match='retinanet_ptnt_s_1x stopped with exit status 3; it ended'):
        run.run(commands, place)
    assert started == [['retinanet_ptnt_s_1x']]


def test_a_failure_names_the_last_log(place: Place, started):
    folder = place.work_dirs / RETINANET.name
    for timestamp in ('20260102_120000', '20260101_120000'):
        write_log(folder, timestamp).parents[1].joinpath(f'{timestamp}.log').touch()
    with pytest.raises(UserError, match='its log is .*20260102_120000.log'):
        run.run({RETINANET: []}, place)


def test_weights_are_looked_for_before_anything_starts(place: Place):
    with pytest.raises(UserError, match=r'ptnt_m_83\.5\.pth\.tar is missing'):
        run.unfinished([RETINANET, *choose(['retinanet_ptnt_m_1x'])], place, print)
