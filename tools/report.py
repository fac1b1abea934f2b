"""Write one page about trainings: see ptnt_mm/cli/report.py."""

import sys

if __name__ == '__main__':
    try:
        from ptnt_mm.cli.report import main
    except KeyboardInterrupt:
        # Imports take a while, and nothing has begun.
        sys.exit(130)
    sys.exit(main())
