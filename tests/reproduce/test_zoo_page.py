"""The model zoo: the committed page, and how results change it."""

import yaml
from mmengine.infer import BaseInferencer
from repository import ROOT

from reproduction.entries import Figures, list_entries
from reproduction.zoo_page import metafile, zoo_page

COSTS = {'retinanet_ptnt_s_1x': (49.44, 254.63)}


def rows(**measured: Figures) -> dict[str, list[str]]:
    """The cells of each config's row of results, as the page prints them."""
    lines = [
        line for line in zoo_page(list_entries(), measured, COSTS).splitlines() if line[:3] == '| ['
    ]
    return {line.split('`')[1]: line.strip('| ').split(' | ')[1:] for line in lines}


def test_the_committed_files_are_up_to_date():
    hint = 'generate the zoo again: python tools/reproduce.py collect'
    assert (ROOT / 'docs' / 'research' / 'model_zoo.md').read_text() == zoo_page(
        list_entries(), {}, {}
    ), hint
    assert (ROOT / 'configs' / 'metafile.yml').read_text() == metafile(list_entries()), hint


def test_every_config_is_linked_once():
    text = zoo_page(list_entries(), {'rtmdet_ptnt_s_1x': {'box AP': 40.0}}, {})
    for entry in list_entries():
        assert text.count(f'/{entry.name}.py)') == 1


def test_only_configs_with_a_result_have_a_row():
    assert '' not in sum(rows().values(), [])
    assert rows().keys() == {entry.name for entry in list_entries() if entry.published}
    assert 'mask_rcnn_ptnt_s_1x' in rows(mask_rcnn_ptnt_s_1x={'box AP': 43.0, 'mask AP': 39.0})


def test_measured_figures_are_next_to_published_ones():
    results = {'box AP': 41.25, 'AP large': 57.0}
    found = rows(retinanet_ptnt_s_1x=results, retinanet_ptnt_m_1x={'box AP': 44.0})
    expected = ['12', '42.0', '41.2', '57.7', '57.0', '49.4', '254.6']
    assert found['retinanet_ptnt_s_1x'] == expected
    assert found['retinanet_ptnt_m_1x'][:3] == ['12', '', '44.0']


def test_the_page_shows_whether_anything_was_trained():
    note = 'Nothing has been trained on these data sets here'
    assert note in zoo_page(list_entries(), {}, {})
    assert note not in zoo_page(list_entries(), {'rtmdet_ptnt_s_1x': {'box AP': 40.0}}, {})


def test_mmengine_reads_the_metafile():
    models = list(BaseInferencer._get_models_from_metafile(str(ROOT)))
    assert [model['Name'] for model in models] == [entry.name for entry in list_entries()]
    for model in models:
        assert (ROOT / model['Config']).is_file()
        assert 'Weights' not in model
    rows = yaml.safe_load(metafile(list_entries()))['Models']
    (upernet,) = (row for row in rows if row['Name'] == 'upernet_ptnt_s_80k_cityscapes')
    assert upernet['Metadata']['Iterations'] == 80_000 and 'Epochs' not in upernet['Metadata']
