"""Make the demo data set: tools/make_demo_data.py, which the wheel carries, too."""

import sys
from importlib import import_module

from ptnt_mm.zoo import config_root

# As when Python runs a script of that folder.
sys.path.insert(0, str(config_root().with_name('tools')))
_tool = import_module('make_demo_data')

main, _parser = _tool.main, _tool.new_parser
