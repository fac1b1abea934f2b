"""Checking from a command line: what ``tools/check_config.py`` does."""

import argparse

from ptnt_mm.check.inspection import Inspection
from ptnt_mm.check.report import closing, lines, of_kind
from ptnt_mm.checkpoints.read import refuse_forced_unsafe_loading
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.engine.start import use_pretrained
from ptnt_mm.utils.findings import Severity

_SPLITS = ('train', 'val', 'test')


def check(args: argparse.Namespace) -> int:
    """Check as the command line says, and print what is found; 1 if there are errors.

    Raises:
        UserError: if the config cannot be read, or is none to train with.
    """
    refuse_forced_unsafe_loading()
    config = read_config(args.config, args.cfg_options)
    require_keys(config, ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper'))
    if args.pretrained is not None:
        use_pretrained(config, args.pretrained)
    inspection = Inspection(config, _SPLITS, args.gpus)
    for subject, findings in inspection.run(inspection.checks, thorough=not args.quick):
        print('\n'.join((subject, *lines(findings))), flush=True)
    print(closing(inspection.findings))
    return int(bool(of_kind(inspection.findings, Severity.ERROR)))
