#!/usr/bin/env bash
# A sweep as an array of Slurm, one shard a task, and a job behind it that merges the shards into one store.
#
# usage: slurm_sweep.sh SWEEP.textproto STORE.sqlite SHARDS [OPTION OF SBATCH]...     README.md says what happens when a task fails
#
# The options are those of each shard; the merge has a core. $PODSIM: the program, if it is not in PATH. Prints the number of the array, and that of the merge.
set -euo pipefail
if (($# < 3)) || ! [[ $3 =~ ^[1-9][0-9]*$ ]]; then
  echo "slurm_sweep.sh: error: expected SWEEP.textproto STORE.sqlite SHARDS [OPTION OF SBATCH]..." >&2
  exit 2
fi
here="$(dirname "${BASH_SOURCE[0]}")"
array="$(sbatch --parsable --array="1-$3" "${@:4}" "$here/shard.sbatch" "$1" "$2" "$3")"
merge="$(sbatch --parsable --dependency="afterany:${array%%;*}" "$here/merge.sbatch" "$2" "$3")"
echo "${array%%;*} ${merge%%;*}"
