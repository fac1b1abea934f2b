"""The model zoo: what is committed, and what results make of it."""

from pathlib import Path

import pytest
import yaml
from mmengine.infer import BaseInferencer

from reproduction.entries import Figures, list_entries
from reproduction.progress import Progress
from reproduction.zoo_page import metafile, zoo_page

pytest.importorskip('mmdet')

ROOT = Path(__file__).parents[2]

MASK_RCNN = {'box AP': 43.0, 'AP small': 24.0, 'mask AP': 39.0}


def rows(**measured: Figures) -> list[Progress]:
    """All rows, with the figures of some; the rest was not run."""
    return [
        Progress(e, e.schedule.length if e.name in measured else 0, measured.get(e.name, {}))
        for e in list_entries()
    ]


def test_what_is_committed_is_made_of_no_results():
    anew = 'write the zoo anew: python tools/reproduce.py collect'
    assert (ROOT / 'docs' / 'model_zoo.md').read_text() == zoo_page(rows()), anew
    assert (ROOT / 'configs' / 'metafile.yml').read_text() == metafile(rows()), anew


def test_every_link_leads_to_a_config():
    for entry in list_entries():
        assert f'(../configs/{entry.name}.py)' in zoo_page(rows())
        assert (ROOT / 'configs' / f'{entry.name}.py').is_file()


def test_results_stand_beside_what_was_published():
    retinanet = {'box AP': 41.5, 'AP large': 57.0}
    text = zoo_page(rows(retinanet_ptnt_s_1x=retinanet, mask_rcnn_ptnt_s_1x=MASK_RCNN))
    lines = {line.split('`')[1]: line for line in text.splitlines() if line.startswith('| [')}
    assert lines['retinanet_ptnt_s_1x'].endswith('| 12 | 42.0 | 41.5 |  |  | 57.7 | 57.0 |')
    assert lines['mask_rcnn_ptnt_s_1x'].endswith('| 12 | 43.0 | 24.0 |  |  | 39.0 |')
    assert lines['retinanet_ptnt_m_1x'].endswith('| 12 |  |  |  |  |  |  |')


def test_what_the_paper_lacks_has_no_column_for_it():
    text = zoo_page(rows(semantic_fpn_ptnt_s_40k_ade20k={'mIoU': 41.25}))
    table = text.split('## Semantic FPN, ADE20K validation\n\n')[1].split('\n\n')[0]
    assert table.splitlines()[0] == '| config | backbone | iterations | mIoU |'
    (row,) = (line for line in table.splitlines() if 'fpn_ptnt_s_' in line)
    assert row.endswith('| PyramidTNT-S | 40,000 | 41.2 |')


def test_mmengine_reads_the_metafile():
    models = list(BaseInferencer._get_models_from_metafile(str(ROOT)))
    assert [model['Name'] for model in models] == [entry.name for entry in list_entries()]
    for model in models:
        assert (ROOT / model['Config']).is_file()
        assert 'Weights' not in model and 'Results' not in model


def test_the_metafile_holds_what_was_measured_alone():
    miou = {'mIoU': 79.5}
    text = metafile(rows(mask_rcnn_ptnt_s_1x=MASK_RCNN, upernet_ptnt_s_80k_cityscapes=miou))
    models = {model['Name']: model for model in yaml.safe_load(text)['Models']}
    box, mask = models['mask_rcnn_ptnt_s_1x']['Results']
    boxes = {'box AP': 43.0, 'AP small': 24.0}
    assert box == dict(Task='Object Detection', Dataset='COCO', Metrics=boxes)
    assert mask['Metrics'] == {'mask AP': 39.0}
    assert 'Results' not in models['retinanet_ptnt_s_1x']
    upernet = models['upernet_ptnt_s_80k_cityscapes']
    (maps,) = upernet['Results']
    assert maps == dict(Task='Semantic Segmentation', Dataset='Cityscapes', Metrics=miou)
    assert upernet['Metadata']['Iterations'] == 80_000 and 'Epochs' not in upernet['Metadata']
