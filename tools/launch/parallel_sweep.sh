#!/usr/bin/env bash
# A sweep in shards by GNU parallel, on this computer or over ssh, merged into one store.
#
# usage: parallel_sweep.sh SWEEP.textproto STORE.sqlite SHARDS [OPTION OF PARALLEL]...     such as --sshlogin node1,node2; README.md
#
# A shard that fails is tried three times, on another computer if there is one. $PODSIM: the program, if it is not in PATH.
set -euo pipefail
if (($# < 3)) || ! [[ $3 =~ ^[1-9][0-9]*$ ]]; then
  echo "parallel_sweep.sh: error: expected SWEEP.textproto STORE.sqlite SHARDS [OPTION OF PARALLEL]..." >&2
  exit 2
fi
podsim="${PODSIM:-podsim}"
# A shard uses all cores of its computer: one at a time. What is not done in the end, the merge tells.
# Names are values, as the number of the shard is: in the command, parallel would replace what looks like {} or {#} in them.
seq "$3" | parallel --quote --jobs 1 --retries 3 --workdir "{6}" "${@:4}" \
  {2} sweep {3} --shard {1}/{5} --store {4}-{1}-of-{5}.sqlite :::: - ::: "$podsim" ::: "$1" ::: "${2%.sqlite}" ::: "$3" ::: "$PWD" || true
parts=()
for ((shard = 1; shard <= $3; shard++)); do
  part="${2%.sqlite}-$shard-of-$3.sqlite"
  if [[ -e "$part" ]]; then parts+=("$part"); fi
done
if ((${#parts[@]} == 0)); then
  echo "parallel_sweep.sh: error: no shard has left a store (${2%.sqlite}-1-of-$3.sqlite, …): what failed is said above" >&2
  exit 1
fi
exec "$podsim" sweep --merge "${parts[@]}" --store "$2"
