#!/usr/bin/env bash
# Train on several GPUs: tools/dist_train.sh CONFIG GPUS [flags of train.py]
# For several machines, run it on each with NNODES, NODE_RANK and MASTER_ADDR set. Set PORT if 29500 is taken.
set -euo pipefail
exec "$(dirname "$0")/dist_run.sh" train.py "$@"
