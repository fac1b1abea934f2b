"""The doctor's command line: ``python -m ptnt_mm.doctor``."""

import sys

try:
    from ptnt_mm.doctor.report import main
    from ptnt_mm.utils.console import exit_status
except ModuleNotFoundError as error:
    # A bare Python in a checkout lacks even the packages that the doctor needs.
    sys.exit(f'error: {error}. Install it first: {sys.executable} -m pip install packaging rich')

if __name__ == '__main__':
    sys.exit(exit_status(main))
