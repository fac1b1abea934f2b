#!/usr/bin/env bash
# Start a tool once for each GPU: tools/dist_run.sh train.py CONFIG GPUS [flags of the tool]
set -euo pipefail
if [ $# -lt 3 ] || ! [[ $3 =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: $(basename "$0") TOOL CONFIG GPUS ...; GPUS is a number of processes, not '${3:-}'" >&2
    exit 2
fi
exec "${PYTHON:-python}" -m torch.distributed.run \
    --nnodes "${NNODES:-1}" --node_rank "${NODE_RANK:-0}" --nproc_per_node "$3" \
    --master_addr "${MASTER_ADDR:-127.0.0.1}" --master_port "${PORT:-29500}" \
    "$(dirname "$0")/$1" "$2" --launcher pytorch "${@:4}"
