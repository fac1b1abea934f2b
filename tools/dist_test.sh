#!/usr/bin/env bash
# Test on several GPUs: tools/dist_test.sh CONFIG CHECKPOINT GPUS [flags of test.py]
# For several machines, see dist_train.sh.
set -euo pipefail
if [ $# -lt 3 ]; then
    sed -n 2p "$0" >&2
    exit 2
fi
exec "$(dirname "$0")/dist_run.sh" test.py "$1" "$3" "$2" "${@:4}"
