"""Detect, segment or classify on images, a video or a webcam: see ptnt_mm/cli/infer.py."""

import sys

if __name__ == '__main__':
    try:
        from ptnt_mm.cli.infer import main
    except KeyboardInterrupt:
        # Imports take a while, and nothing has begun.
        sys.exit(130)
    sys.exit(main())
