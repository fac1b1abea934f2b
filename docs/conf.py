"""The documentation's site: Sphinx with MyST pages and the furo theme. Run by ``make docs``."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

project = 'ptnt_mm'
copyright = 'the ptnt_mm authors'
html_title = project
html_theme = 'furo'
# The mirror of a reader may be offline: no fonts or scripts from elsewhere.
html_static_path = []
html_copy_source = False
html_show_sourcelink = False

extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon']
# The headings' names are GitHub's, so that links work there, too.
myst_heading_anchors = 4
myst_links_external_new_tab = True
napoleon_use_ivar = True
autodoc_typehints = 'description'
autodoc_typehints_description_target = 'documented'
autodoc_member_order = 'bysource'
# Importing the model does not need them, and the site has to build without.
exclude_patterns = ['benchmarks']
