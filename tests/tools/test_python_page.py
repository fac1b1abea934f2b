"""The examples of docs/python.md, as they stand, one after the other."""

import re

from .workplace import ROOT, Workplace


def test_train_check_and_predict(workplace: Workplace):
    page = (ROOT / 'docs' / 'python.md').read_text()
    script = workplace.folder / 'page.py'
    script.write_text('\n'.join(re.findall(r'```python\n(.*?)```', page, re.DOTALL)))
    printed = workplace.run(script).stdout
    assert '2 iterations\n' in printed
    assert (workplace.folder / 'work_dirs' / 'two' / 'epoch_1.pth').is_file()
    assert 'model.bbox_head.num_classes: is 80, the training data has 4 classes' in printed
    assert re.search(r'^\d+ detections$', printed, re.MULTILINE)
