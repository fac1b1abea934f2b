"""The doctor's command line: ``python -m ptnt_mm.doctor``."""

import sys

from ptnt_mm.doctor.report import main
from ptnt_mm.utils.errors import exit_status

if __name__ == '__main__':
    sys.exit(exit_status(main))
