#!/usr/bin/env bash
# A 4x4 mesh on v4-32, a slice of 2x2x4 chips without wraparound: an all-gather along each axis and the bandwidth that it amounts to.
# README.md beside this says what follows. PODSIM names another program than build/podsim.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
podsim=${PODSIM:-$here/../../../build/podsim}
mebibytes=64

"$podsim" show topology --machine tpu_v4 --slice 2x2x4
for order in jax "$here/round_the_square.txt"; do
  printf '\n== order %s\n' "$(basename "$order")"
  "$podsim" show mesh --machine tpu_v4 --slice 2x2x4 --mesh x=4,y=4 --mesh-order "$order"
  printf '\nall-gather of %d MiB a chip: ms, and GB/s as steps * shard / time with 3 steps\n' $mebibytes
  for axis in x y; do
    for algorithm in line ring-one-way ring-shortest ring direct; do
      printf '%-3s %-14s' $axis $algorithm
      "$podsim" run --machine tpu_v4 --slice 2x2x4 --mesh x=4,y=4 --mesh-order "$order" --collective all-gather --axis $axis \
        --bytes ${mebibytes}MiB --algorithm $algorithm --format json 2>/dev/null |
        awk -v bytes=$((mebibytes * 1048576)) '$1 == "\"makespan_s\":" && !seen++ { printf "%8.3f %8.1f\n", $2 * 1e3, 3 * bytes / $2 / 1e9 }' ||
        printf '       -        - needs a closed ring\n'
    done
  done
done
