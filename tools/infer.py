"""Detect or segment on an image, a folder, a video or a webcam: drawn pictures and JSON.

python tools/infer.py photos configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth
"""

import sys

if __name__ == '__main__':
    try:
        from ptnt_mm.cli.infer import infer
        from ptnt_mm.cli.parsers import infer_parser, run
    except KeyboardInterrupt:
        # Imports take a while, and nothing has begun.
        sys.exit(130)
    sys.exit(run(infer, infer_parser(__doc__)))
