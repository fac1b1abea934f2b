"""The site of the documentation: Sphinx, MyST pages and the furo theme. Run by ``make docs``."""

import sys
from pathlib import Path

# For autodoc, which imports what it describes.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

project = 'ptnt_mm'
copyright = 'the ptnt_mm authors'
html_title = project
html_theme = 'furo'
html_copy_source = False
html_static_path = ['_static']
html_css_files = ['custom.css']

extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon']
# Headings get the names that GitHub gives them, so that a link works in both places.
myst_heading_anchors = 4
napoleon_use_ivar = True
autodoc_typehints = 'description'
autodoc_typehints_description_target = 'documented'
autodoc_member_order = 'bysource'
