"""Started by IPython in the kernel of a notebook: ``!ptnt ...`` need not import PyTorch again."""

import shlex
import sys
import tempfile
from pathlib import Path

from IPython import get_ipython

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests'))

shell = get_ipython()
run = shell.system


def system(command: str) -> None:
    """Run a command, print its output and keep its exit status, as IPython does."""
    words = shlex.split(command)
    if words[0] != 'ptnt':
        run(command)
        return
    # Only here, because it imports torch.
    from forked import Forked

    with tempfile.NamedTemporaryFile('r') as output:
        forked = Forked([ROOT / 'tools' / 'ptnt', *words[1:]], Path.cwd(), Path(output.name))
        shell.user_ns['_exit_code'] = forked.wait()
        print(output.read(), end='')


shell.system = system
