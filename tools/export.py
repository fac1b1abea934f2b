"""Export a detector or segmenter for other runtimes: see ptnt_mm/cli/export.py."""

import sys

if __name__ == '__main__':
    try:
        from ptnt_mm.cli.export import main
    except KeyboardInterrupt:
        # Imports take a while, and nothing has begun.
        sys.exit(130)
    sys.exit(main())
