"""Drawing masks, as a user types it, and the config that reads them."""

from .workplace import ROOT, Workplace

CONFIG = ROOT / 'configs' / 'custom_seg.py'


def test_drawn_masks_are_sound_data(workplace: Workplace):
    own = workplace.folder / 'data' / 'custom_seg'
    (own / 'images').mkdir(parents=True)
    for split in ('train', 'val'):
        (own / 'images' / split).symlink_to(workplace.folder / 'data' / 'demo' / split)
        file = f'data/demo/annotations/instances_{split}.json'
        done = workplace.run('masks_from_coco.py', file, own / 'masks' / split)
        classes = "classes = ('background', 'ball', 'coin', 'crate', 'cup')"
        assert done.stdout.splitlines()[-1] == classes
        # What the config has, so that nothing needs to be changed in it.
        assert classes in CONFIG.read_text()
    done = workplace.run('check_config.py', CONFIG, '--gpus', 8)
    assert done.stdout.splitlines()[-1] == 'nothing found'
    assert 'ok       train: 16 masks open, values 0 to 4' in done.stdout
    assert 'ok       Memory: a step takes about' in done.stdout


def test_masks_are_drawn_in_an_order(workplace: Workplace):
    file = 'data/demo/annotations/instances_val.json'
    order = ('cup', 'ball', 'coin', 'crate')
    done = workplace.run('masks_from_coco.py', file, 'in_order/val', '--classes', *order)
    assert done.stdout.splitlines()[-1] == f'classes = {("background", *order)!r}'
    # The file's own order would be another.
    done = workplace.run('masks_from_coco.py', file, 'in_order/train', check=False)
    assert done.returncode == 1 and 'Draw both with the same --classes' in done.stdout


def test_masks_are_not_replaced_unasked(workplace: Workplace):
    (workplace.folder / 'others').mkdir()
    (workplace.folder / 'others' / 'a.png').touch()
    file = 'data/demo/annotations/instances_val.json'
    done = workplace.run('masks_from_coco.py', file, 'others', check=False)
    assert done.returncode == 1
    assert done.stdout.startswith('error: ') and 'give --overwrite' in done.stdout
