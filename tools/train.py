"""Train a detector or segmenter: see ptnt_mm/cli/train.py."""

import sys

if __name__ == '__main__':
    try:
        from ptnt_mm.cli.train import main
    except KeyboardInterrupt:
        # Imports take a while, and nothing has begun.
        sys.exit(130)
    sys.exit(main())
