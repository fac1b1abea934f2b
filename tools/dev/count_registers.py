"""Compile the Triton kernels for GPUs that need not exist; print registers and spilled bytes.

    python tools/dev/count_registers.py [--archs small] [--types bf16 fp32]

A row for each kernel, width of a word, type and GPU. Needs Triton, which PyTorch for CUDA brings.
"""

import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

from ptnt_mm.cli.start import Parser
from ptnt_mm.models.pyramid_tnt import ARCHS
from ptnt_mm.utils.tables import new_table, to_text

KERNELS = ('forward_kernel', 'mlp_backward_kernel', 'attention_backward_kernel')
CAPABILITIES = (80, 90)
"""Of an A100 and an H100."""


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('--archs', nargs='+', choices=ARCHS, default=['small'], metavar='ARCH')
    parser.add_argument('--types', nargs='+', choices=('bf16', 'fp16', 'fp32'), default=['bf16'])
    return parser.run(print_usage, words)


def print_usage(args: Namespace) -> None:
    """Print the table."""
    gpus = [f'sm_{capability}: {what}' for capability in CAPABILITIES for what in _COLUMNS]
    table = new_table('channels', 'type', 'kernel', *gpus)
    rows = (ARCHS[arch] for arch in args.archs)
    sizes = {
        size for row in rows for size in zip(row['inner_dims'], row['inner_heads'], strict=True)
    }
    for channels, heads in sorted(sizes):
        for dtype in args.types:
            for kernel in KERNELS:
                found = [usage(kernel, channels, heads, dtype, gpu) for gpu in CAPABILITIES]
                cells = (str(run[name]) for run in found for name in _COLUMNS.values())
                table.add_row(str(channels), dtype, kernel.removesuffix('_kernel'), *cells)
    print(to_text(table))


_COLUMNS = {'registers': 'REG', 'spilled': 'STACK'}
"""Columns, and the names of ``cuobjdump``; spilled are bytes of each thread."""


def usage(kernel: str, channels: int, heads: int, dtype: str, capability: int) -> dict[str, int]:
    """Compile a kernel for weights of the words' type; what it uses, by cuobjdump's names."""
    # Where there is no Triton, or an old one, the help is still shown.
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from ptnt_mm.models.kernels import inner_triton

    function = getattr(inner_triton, kernel)
    width = max(inner_triton.SIDE, triton.next_power_of_2(channels))
    constants = dict(WIDTH=width, HEADS=heads, HAS_KEPT=True)
    integers = ('sentences', 'channels', 'units', 'size')
    types = dict.fromkeys(function.arg_names, f'*{dtype}') | dict.fromkeys(integers, 'i32')
    types |= dict(sums='*fp32', eps='fp32') | dict.fromkeys(constants, 'constexpr')
    signature = {name: types[name] for name in function.arg_names}
    # As a launch does it: for tensors, and for numbers that happen to be multiples of 16.
    multiples = {
        name for name, n in dict(channels=channels, units=4 * channels).items() if n % 16 == 0
    }
    aligned = {
        (place,): [['tt.divisibility', 16]]
        for place, name in enumerate(signature)
        if signature[name].startswith('*') or name in multiples
    }
    source = ASTSource(function, signature, constexprs=constants, attrs=aligned)
    target = GPUTarget('cuda', capability, 32)
    code = triton.compile(source, target=target, options=inner_triton.OPTIONS).asm['cubin']
    tool = Path(triton.__file__).parent / 'backends/nvidia/bin/cuobjdump'
    with TemporaryDirectory() as folder:
        file = Path(folder) / 'kernel.cubin'
        file.write_bytes(code)
        command = [tool, '--dump-resource-usage', file]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in re.findall(r'([A-Z]+):(\d+)', printed)}


if __name__ == '__main__':
    sys.exit(main())
