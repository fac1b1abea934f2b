"""The command ``python -m ptnt_mm``, which is ``ptnt``: see workbench/cli/main.py."""

if __name__ == '__main__':
    PTNT_MM_REGISTERS_LATER = True  # help does not wait for torch
    from ptnt_mm.workbench.cli.main import leave, main

    leave(main())
