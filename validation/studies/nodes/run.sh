#!/usr/bin/env bash
# All-reduces on 1 to 256 nodes of a DGX H100 network: nodes.csv and nodes.svg beside this, written anew. README.md says what they mean.
# PODSIM names another program than build/podsim.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PODSIM=${PODSIM:-$here/../../../build/podsim} exec python3 "$here/nodes.py" "$here"
