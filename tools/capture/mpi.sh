#!/usr/bin/env bash
# Measures collectives, products, copies and products with a collective on this host, over Open MPI: what `podsim calibrate` begins with.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

usage() {
  cat << 'TEXT'
usage: tools/capture/mpi.sh [RANKS] [FILE.csv]

RANKS processes of one host (default 2), a core each; observations are written to FILE.csv (default mpi_RANKS_ranks.csv). About two minutes. Needs
build/podsim_mpirun: cmake --preset release && cmake --build build --target podsim_mpirun, where Open MPI is installed.

Environment: PODSIM_MPIRUN, another program than build/podsim_mpirun; ROUNDS, how often over all operations (default 3); SECONDS_EACH, how long each
is repeated in a round (default 0.2).
TEXT
}

case "${1:-}" in
  -h | --help) usage && exit 0 ;;
esac
ranks="${1:-2}"
if ! [[ "$ranks" =~ ^[1-9][0-9]*$ ]] || (($# > 2)); then
  usage >&2
  exit 2
fi
file="${2:-mpi_${ranks}_ranks.csv}"
program="${PODSIM_MPIRUN:-$root/build/podsim_mpirun}"
if ! [[ -x "$program" ]] || ! command -v mpirun > /dev/null; then
  echo "mpi.sh: error: expected mpirun and $program; build it where Open MPI is installed (libopenmpi-dev openmpi-bin)" >&2
  exit 2
fi

options=(--bind-to core -n "$ranks")
if ((ranks > $(nproc))); then
  echo "mpi.sh: $ranks ranks share $(nproc) cores: the times will be those of waiting for a core" >&2
  options=(--oversubscribe --bind-to none -n "$ranks")
fi
# mpirun asks whoever is root in a container to say that this is meant.
if ((EUID == 0)); then
  options+=(--allow-run-as-root)
fi
mpirun "${options[@]}" "$program" --survey "$file" --rounds "${ROUNDS:-3}" --seconds-each "${SECONDS_EACH:-0.2}"
echo "mpi.sh: $(grep -vc '^op,' "$file") observations in $file"
