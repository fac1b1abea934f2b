"""Draw what a network sees in images: see ptnt_mm/cli/visualize.py."""

import sys

if __name__ == '__main__':
    try:
        from ptnt_mm.cli.visualize import main
    except KeyboardInterrupt:
        # Imports take a while, and nothing has begun.
        sys.exit(130)
    sys.exit(main())
