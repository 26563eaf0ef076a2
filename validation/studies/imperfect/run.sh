#!/usr/bin/env bash
# Damaged pods of 4,096 and 16,384 chips: results.csv and imperfect.svg beside this, written anew, and the tables of README.md, printed.
# PODSIM names another program than build/podsim.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
podsim=${PODSIM:-$here/../../../build/podsim}
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
"$podsim" sweep "$here/imperfect.textproto" --store "$store/imperfect.sqlite"
"$podsim" sweep --store "$store/imperfect.sqlite" --export csv -o "$store/imperfect.csv"
python3 "$here/imperfect.py" --take "$store/imperfect.csv"
