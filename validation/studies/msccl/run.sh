#!/usr/bin/env bash
# Algorithms of MSCCL and podsim's own on one node of dgx_h100 beside the times measured there: writes results.csv, prints the tables of README.md.
#
# usage: run.sh FOLDER    FOLDER holds the algorithms for ND H100 v5: tools/msccl-algorithms/ndv5 of github.com/Azure/msccl-scheduler (MIT)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python3 "$here/msccl.py" "${PODSIM:-$here/../../../build/podsim}" "${1:?usage: run.sh FOLDER}" "$here"
