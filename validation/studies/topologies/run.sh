#!/usr/bin/env bash
# Plain against twisted tori, broken cables and slow chips: all-to-all and a MeshSlice GEMM on 128 and 256 chips. README.md beside this says what
# the tables mean. PODSIM names another program than build/podsim.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
podsim=${PODSIM:-$here/../../../build/podsim}
all_to_all=(--machine ideal --set link.bandwidth=45GB/s --mesh-order row-major --collective all-to-all --bytes 128MiB)
layer=(--machine tpu_v4:spec --gemm m=131072,n=16384,k=16384)

# milliseconds of a run, or - where it does not apply
time_of() {
  "$podsim" run "$@" --format json 2>/dev/null | awk '$1 == "\"makespan_s\":" && !seen++ { printf "%.3f", $2 * 1e3 }' || printf -- -
}
# the line `NAME VALUE` of show topology
shown() { "$podsim" show topology --machine ideal --set link.bandwidth=45GB/s --slice "$1" --topology "$2" | sed -n "s/^$3  *//p"; }

printf '== Bounds: from the links, and from the loads of shortest routes\n'
for slice in 4x4x8 4x8x8; do
  for topology in torus twisted; do
    printf '%-6s %-8s bisection %s, mean distance %s, all-to-all bound %s\n' "$slice" "$topology" "$(shown $slice $topology 'bisection bandwidth')" \
      "$(shown $slice $topology 'mean distance')" "$(shown $slice $topology 'all-to-all bound')"
  done
done
python3 "$here/route_loads.py"

printf '\n== All-to-all, 128 MiB a chip, ms\n%-6s %-8s' slice topology
printf ' %16s' 'direct, one axis' 'pairwise, one' 'ring, 3 axes' 'direct, 3 axes' 'pairwise, 3 axes'
printf '\n'
for slice in 4x4x8 4x8x8; do
  for topology in torus twisted; do
    chips=$((${slice//x/*}))
    printf '%-6s %-8s' "$slice" "$topology"
    for algorithm in direct pairwise; do
      printf ' %16s' "$(time_of "${all_to_all[@]}" --slice "$slice" --topology "$topology" --mesh all=$chips --axis all --algorithm $algorithm)"
    done
    for algorithm in ring direct pairwise; do
      printf ' %16s' "$(time_of "${all_to_all[@]}" --slice "$slice" --topology "$topology" --axis row,col,depth --algorithm $algorithm)"
    done
    printf '\n'
  done
done

printf '\n== The same, direct, with a broken cable along x, y or z, ms\n'
for slice in 4x4x8 4x8x8; do
  for topology in torus twisted; do
    chips=$((${slice//x/*}))
    printf '%-6s %-8s' "$slice" "$topology"
    for cable in 0.0.0-1.0.0 0.0.0-0.1.0 0.0.0-0.0.1; do
      printf ' %10s' "$(time_of "${all_to_all[@]}" --slice "$slice" --topology "$topology" --mesh all=$chips --axis all --algorithm direct --fail $cable)"
    done
    printf '\n'
  done
done

printf '\n== A layer, plain and twisted\n'
"$podsim" compare "${layer[@]}" --slice 4x4x8 --topology torus,twisted --mesh row=16,col=8 --algorithms collective,meshslice,wang --slice-count 2,4,8,16
"$podsim" compare "${layer[@]}" --slice 4x8x8 --topology torus,twisted --mesh row=32,col=8 --algorithms collective,meshslice,wang --slice-count 2,4,8

printf '\n== The layer on 4x4x8 with one broken cable\n'
for topology in torus twisted; do
  for algorithm in collective 'meshslice --slice-count 8'; do
    printf -- '-- %s, %s\n' "$topology" "$algorithm"
    # shellcheck disable=SC2086
    "$podsim" run "${layer[@]}" --slice 4x4x8 --topology $topology --mesh row=16,col=8 --algorithm $algorithm --fail any |
      grep -E '^(time|one broken|worst|median|best)'
  done
done

printf '\n== The layer with 1 %% of the chips at 0.8 of their speed, ms: healthy, seeds 0 to 4\n'
for pod in '4x4x8 row=16,col=8' '4x8x8 row=32,col=8'; do
  read -r slice mesh <<<"$pod"
  for algorithm in collective 'meshslice --slice-count 4' 'meshslice --slice-count 8'; do
    # shellcheck disable=SC2086
    run=("${layer[@]}" --slice "$slice" --mesh "$mesh" --algorithm $algorithm)
    printf '%-6s %-26s %8s ' "$slice" "$algorithm" "$(time_of "${run[@]}")"
    for seed in 0 1 2 3 4; do printf ' %8s' "$(time_of "${run[@]}" --straggler random:1%=0.8 --seed $seed)"; done
    printf '\n'
  done
done

printf '\n== One problem on three machines\n'
"$podsim" compare --machine tpu_v4,tpu_v5p,dgx_h100 --slice 8x8 --gemm m=131072,n=16384,k=16384 --algorithms meshslice,collective --slice-count 4,8
