"""Pascal VOC with a polygon for each object, as Roboflow writes it."""

from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.data.formats import voc
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree


def _find(tree: Tree) -> str:
    files = tree.containing('.xml', b'<annotation', b'<polygon>\\s*<x1>')
    return f'{counted(len(files), "XML file")} with <annotation> and <polygon>' if files else ''


FORMAT = Format(
    __name__,
    title='Pascal VOC with polygons',
    looks_for='XML files with <annotation>, and a <polygon> for each object',
    tasks=('detection', 'instance', 'semantic'),
    order=30,
    find=_find,
    read=voc.FORMAT.read,
    note='From Roboflow. The polygons are masks. `--format voc` reads only the boxes.',
)
