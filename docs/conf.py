"""The site of the documentation: Sphinx, MyST pages and the furo theme. Run by ``make docs``."""

import sys
from pathlib import Path

# For autodoc, which imports what it describes, and for source_pages.
docs = Path(__file__).resolve().parent
sys.path[:0] = [str(docs.parent), str(docs)]

project = 'ptnt_mm'
copyright = 'the ptnt_mm authors'
html_title = project
html_theme = 'furo'
html_copy_source = False
html_static_path = ['_static']
html_css_files = ['custom.css']
html_js_files = [('tables.js', {'defer': 'defer'})]

extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon', 'source_pages']
# Headings get the names that GitHub gives them, so that a link works in both places.
myst_heading_anchors = 4
napoleon_use_ivar = True
autodoc_typehints = 'description'
autodoc_typehints_description_target = 'documented'
autodoc_member_order = 'bysource'
