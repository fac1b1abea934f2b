#!/usr/bin/env bash
# Reproduce a COCO row of the model zoo: tools/reproduce_coco.sh CONFIG [flags of train.py]
# After an interruption run it again: finished steps are skipped. docs/reproduce.md describes the ways to call it.
# Environment variables: GPUS (of this machine; default: all), WEIGHTS (folder of the authors' files; pretrained),
# WORK_DIRS (work_dirs), PYTHON (of your own environment). On several machines NNODES, NODE_RANK, MASTER_ADDR
# and PORT, as for dist_train.sh. For Slurm PARTITION, and GPUS for all machines.
set -euo pipefail
if [ $# -lt 1 ] || [[ $1 == -* ]]; then
    sed -n 2,6p "$0" >&2
    exit 2
fi
cd "$(dirname "$0")/.."
config=$1
weights=${WEIGHTS:-pretrained}
work_dirs=${WORK_DIRS:-work_dirs}
gpus=${GPUS:-$(nvidia-smi --list-gpus | wc -l)} || { echo "error: set GPUS, the number of GPUs" >&2 && exit 1; }
total=$((gpus * ${NNODES:-1}))

# Machines with a common file system prepare it one after the other: the first one does the work.
mkdir -p data
exec 9>data/.lock
flock 9

# 1. The environment, with the versions of requirements/constraints.txt
if [ -z "${PYTHON:-}" ]; then
    make setup
    PYTHON=$PWD/.venv/bin/python
fi
export PYTHON

# 2. The flags of the recipe, and an error if its weights are missing
words=$("$PYTHON" tools/reproduce.py flags "$config" --gpus "$total" --weights "$weights")
mapfile -t flags <<<"$words"

# 3. COCO
tools/download_coco.sh data/coco

# 4. The thorough check, once; the first two flags are --pretrained FILE
checked=data/.checked_$config
if [ ! -e "$checked" ]; then
    "$PYTHON" -m ptnt_mm check "$config" --gpus "$total" "${flags[@]:0:2}"
    touch "$checked"
fi
exec 9>&- # the training must not hold the lock

# 5. Train, or continue
if [ -n "${PARTITION:-}" ]; then
    GPUS=$total tools/slurm_train.sh "$PARTITION" "$config" "$config" "$work_dirs/$config" "${flags[@]}" "${@:2}"
else
    tools/dist_train.sh "$config" "$gpus" --work-dir "$work_dirs/$config" "${flags[@]}" "${@:2}"
fi

# 6. Evaluate the last checkpoint, on the first machine, and write the row
if [ "${NODE_RANK:-0}" = 0 ]; then
    checkpoint=$(cat "$work_dirs/$config/last_checkpoint")
    test=("$config" "$checkpoint" --work-dir "$work_dirs/$config/test")
    if [ -n "${PARTITION:-}" ]; then
        srun --partition "$PARTITION" --job-name "$config" --gres gpu:1 "$PYTHON" -m ptnt_mm test "${test[@]}"
    else
        NNODES=1 MASTER_ADDR=127.0.0.1 tools/dist_test.sh "${test[@]:0:2}" "$gpus" "${test[@]:2}"
    fi
    "$PYTHON" tools/reproduce.py collect --work-dirs "$work_dirs"
fi
