"""The command ``python -m ptnt_mm``: see cli/package.py."""

import signal
import sys

from ptnt_mm.cli.package import main

if __name__ == '__main__':
    if hasattr(signal, 'SIGPIPE'):
        # As other tools do: end when nobody reads on, as in `... list | head`.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
