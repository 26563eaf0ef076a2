#!/usr/bin/env bash
# Compiled train steps of Llama 3 on nodes of dgx_h100, each in two orders, with all-reduces as they are and as reduce-scatters: prints the table of README.md.
#
# usage: run.sh FOLDER    FOLDER holds hlo_llama*.hlo: xla/tools/benchmarks/hlo of github.com/openxla/xla (Apache-2.0)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python3 "$here/train_modules.py" "${PODSIM:-$here/../../../build/podsim}" "${1:?usage: run.sh FOLDER}"
