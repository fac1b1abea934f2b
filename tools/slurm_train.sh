#!/usr/bin/env bash
# Train under Slurm: tools/slurm_train.sh PARTITION JOB CONFIG WORK_DIR [flags of train.py]
# Environment variables: GPUS (default 8), GPUS_PER_NODE (8), CPUS_PER_TASK (5), SRUN_ARGS.
set -euo pipefail
if [ $# -lt 4 ]; then
    sed -n 2,3p "$0" >&2
    exit 2
fi
gpus=${GPUS:-8}
per_node=${GPUS_PER_NODE:-8}
# --kill-on-bad-exit: if one process fails, stop all, or the others would wait for it forever.
# shellcheck disable=SC2086  # SRUN_ARGS is several words
exec srun --partition "$1" --job-name "$2" --ntasks "$gpus" \
    --ntasks-per-node "$((gpus < per_node ? gpus : per_node))" \
    --gres "gpu:$((gpus < per_node ? gpus : per_node))" --cpus-per-task "${CPUS_PER_TASK:-5}" \
    --kill-on-bad-exit=1 ${SRUN_ARGS:-} \
    "${PYTHON:-python}" -u "$(dirname "$0")/train.py" "$3" --work-dir "$4" --launcher slurm "${@:5}"
