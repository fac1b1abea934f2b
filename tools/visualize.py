"""Draw a network's features for images: see ptnt_mm/cli/visualize.py."""

import os
import signal
import sys

if __name__ == '__main__':
    # Nothing has started while libraries are imported, and some mishandle KeyboardInterrupt.
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from ptnt_mm.cli.visualize import main

    signal.signal(signal.SIGINT, before)
    sys.exit(main())
