"""Checking from a command line: what ``tools/check_config.py`` does."""

import argparse

from ptnt_mm.check import inspection
from ptnt_mm.checkpoints.read import refuse_forced_unsafe_loading
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.engine.start import use_pretrained
from ptnt_mm.utils.findings import Finding, Severity, closing, lines, of_kind


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
    findings = inspection.check(config, gpus=args.gpus, quick=args.quick, tell=_print)
    print(closing(findings))
    return int(bool(of_kind(findings, Severity.ERROR)))


def _print(subject: str, findings: list[Finding]) -> None:
    print('\n'.join((subject, *lines(findings))), flush=True)
