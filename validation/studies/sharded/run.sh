#!/usr/bin/env bash
# What a compiler gathers, and what a distributed kernel does instead: 3-D FFTs on 256 chips of TPU v4 and v5e, LU of a matrix of 65,536 rows. README.md
# beside this says what the tables mean. PODSIM names another program than build/podsim.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
podsim=${PODSIM:-$here/../../../build/podsim}

# time, its parts, peak memory and received bytes of a run, or the reason why there is none
row() {
  "$podsim" run "$@" --format json | python3 -c '
import json, sys
run = json.load(sys.stdin)
ms = lambda key: f"{run[key] * 1e3:11.3f}"
print(ms("makespan_s"), ms("compute_s"), ms("exposed_communication_s"), ms("waiting_s"),
      f"""{run["peak_memory_bytes"] / 1e9:9.2f} {run["received_bytes"] / 1e9:9.3f} {"yes" if run["contains_all_gather"] else "no":>10}""")'
}
heading() { printf "%-30s %11s %11s %11s %11s %9s %9s %10s\n" "$1" 'time ms' 'core ms' 'exposed ms' 'waiting ms' 'peak GB' 'rec. GB' all-gather; }

# machine, extent, mesh, algorithm, sharding, more options
fft() {
  local machine=$1 n=$2 mesh=$3 algorithm=$4 sharding=$5
  shift 5
  printf "%-30s " "$n $mesh $algorithm${*:+ }${*//--/}"
  row --machine "$machine" --slice 16x16 --mesh "$mesh" --program 'Y = fft(X)' --shape "X=${n}x${n}x${n},c64" --shard "X=$sharding" --order transposed \
    --algorithm "fft=$algorithm" --collectives auto "$@"
}

for machine in tpu_v4 tpu_v5e; do
  printf '== 3-D FFT of n x n x n complex numbers on %s, 16x16 chips\n' "$machine"
  heading 'n mesh algorithm'
  for n in 256 512 1024 2048; do
    fft "$machine" $n x=16,y=16 naive x,y,-
    fft "$machine" $n x=16,y=16 pencil x,y,-
    fft "$machine" $n x=64,y=4 pencil x,y,-
    fft "$machine" $n x=16,y=16 slab '(x+y),-,-'
  done
  fft "$machine" 1024 x=16,y=16 pencil x,y,- --overlap 4
  printf '\n'
done

# more options
lu() {
  row --machine tpu_v4:spec --slice 16x16 --mesh x=16,y=16 --program 'P, L, U = lu(A)' --shape A=65536x65536 --precision highest --force "$@"
}
printf '== LU of 65536 x 65536 float32 (six bf16 passes) on tpu_v4:spec, 16x16 chips\n'
heading 'algorithm'
printf '%-30s ' naive
lu --shard A=x,y --algorithm lu=naive --collectives auto
printf '%-30s ' 'naive, rows over all chips'
lu --shard 'A=(x+y),-' --algorithm lu=naive --collectives auto
for block in 128 256 512 1024 2048; do
  for ahead in 0 1; do
    printf '%-30s ' "block $block, look-ahead $ahead"
    lu --shard A=x,y --block $block --look-ahead $ahead
  done
done

printf '\n== Where look-ahead loses: 16384 x 16384 on 4x4 chips\n'
heading 'algorithm'
for ahead in 0 1; do
  printf '%-30s ' "block 512, look-ahead $ahead"
  row --machine tpu_v4:spec --slice 4x4 --mesh x=4,y=4 --program 'P, L, U = lu(A)' --shape A=16384x16384 --shard A=x,y --precision highest --force --block 512 --look-ahead $ahead
done

printf '\n== What bounds block 512 with look-ahead\n'
"$podsim" run --machine tpu_v4:spec --slice 16x16 --mesh x=16,y=16 --program 'P, L, U = lu(A)' --shape A=65536x65536 --shard A=x,y --precision highest --force \
  --block 512 --look-ahead 1 --explain | sed -n '/^1 % more/,$p'
