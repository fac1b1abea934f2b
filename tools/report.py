"""Write one page about runs: see ptnt_mm/cli/report.py."""

import os
import signal
import sys

if __name__ == '__main__':
    # Nothing has started while libraries are imported, and some mishandle KeyboardInterrupt.
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from ptnt_mm.cli.report import main

    signal.signal(signal.SIGINT, before)
    sys.exit(main())
