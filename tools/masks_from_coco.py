"""Draw COCO polygons as masks for a segmenter: see ptnt_mm/cli/masks_from_coco.py."""

import sys

from ptnt_mm.cli.masks_from_coco import main

if __name__ == '__main__':
    sys.exit(main())
