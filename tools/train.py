"""Train a detector or segmenter: see ptnt_mm/cli/train.py."""

import os
import signal
import sys

if __name__ == '__main__':
    # Nothing has started while libraries are imported, and some mishandle KeyboardInterrupt.
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from ptnt_mm.cli.train import main

    signal.signal(signal.SIGINT, before)
    sys.exit(main())
