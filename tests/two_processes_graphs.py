"""Two processes train with and without graphs, which a stand-in captures.

`two_processes_graphs.py FOLDER`: the first one writes whether losses and weights are equal, and
whether both processes end with the same weights.
"""

import json
import sys
from pathlib import Path

import torch.distributed as dist
from engine.test_cuda_graphs import run
from mmengine.dist import all_gather_object, get_rank
from toy import same

from benchmark.graph_stand_in import GraphStandIn


def main() -> None:
    """Train twice."""
    dist.init_process_group('gloo')
    folder, capture = Path(sys.argv[1]), GraphStandIn()
    settings = dict(launcher='pytorch', model_wrapper_cfg=dict(device_ids=None))
    expected, losses = run(folder / 'plain', None, **settings)
    weights, with_graphs = run(folder / 'graphs', capture, **settings)
    # Each process keeps its own statistics of BatchNorm.
    shared = {name: value for name, value in weights.items() if 'running' not in name}
    mine, others = all_gather_object(shared)
    found = dict(
        losses=with_graphs == losses,
        weights=same(weights, expected),
        processes=same(mine, others),
        captures=len(set(capture.sizes)),
    )
    if get_rank() == 0:
        folder.joinpath('found.json').write_text(json.dumps(found))


if __name__ == '__main__':
    main()
