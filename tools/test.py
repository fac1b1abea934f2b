"""Evaluate a checkpoint of a detector or segmenter: see ptnt_mm/cli/test.py."""

import os
import signal
import sys

if __name__ == '__main__':
    # Nothing has started while libraries are imported, and some mishandle KeyboardInterrupt.
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from ptnt_mm.cli.test import main

    signal.signal(signal.SIGINT, before)
    sys.exit(main())
