#!/usr/bin/env bash
# The experiments of the MeshSlice scripts, simulated: one sweep per row of the list, to CSV and SVG in results/. Takes about a minute; sweeps that
# were stopped go on where they were. SVGs need gnuplot (Debian: gnuplot-nox).
#
# usage: run.sh [PODSIM]      default build/podsim
set -euo pipefail
podsim="$(realpath "${1:-build/podsim}")"
cd "$(dirname "${BASH_SOURCE[0]}")"
stores="${TMPDIR:-/tmp}/podsim-meshslice-isca25"
mkdir -p results "$stores"

# plot NAME TITLE XLABEL QUERY: bars of MFU, a group per x, a bar per series; the query gives x, series, percent.
plot() {
  local name="$1" title="$2" xlabel="$3" query="$4" data
  command -v gnuplot > /dev/null || return 0
  data="$("$podsim" sweep --store "$stores/$name.sqlite" --query "$query" --format csv)"
  python3 - "$data" > "$stores/$name.dat" << 'PYTHON'
import csv, io, sys
rows = list(csv.DictReader(io.StringIO(sys.argv[1])))
xs, series = list(dict.fromkeys(r["x"] for r in rows)), list(dict.fromkeys(r["series"] for r in rows))
value = {(r["x"], r["series"]): r["percent"] for r in rows}
print("\t".join(["x"] + series))
for x in xs:
    print("\t".join([x] + [value.get((x, s), "nan") for s in series]))
PYTHON
  local columns
  columns="$(head -1 "$stores/$name.dat" | tr '\t' '\n' | wc -l)"
  gnuplot << GNUPLOT
set terminal svg size 900,420 font "sans-serif,12" noenhanced background "white"
set output "results/$name.svg"
set title noenhanced "$title (simulated, tpu_v4 as a 2-D torus)"
set xlabel "$xlabel"
set ylabel "MFU, %"
set yrange [0:100]
set grid ytics
set key outside right
set style data histogram
set style histogram cluster gap 1
set style fill solid 0.8
set datafile separator "\t"
plot for [i=2:$columns] "$stores/$name.dat" using i:xtic(1) title columnheader(i)
GNUPLOT
}

for sweep in sweeps/*.textproto; do
  name="$(basename "$sweep" .textproto)"
  echo "$name"
  "$podsim" sweep "$sweep" --store "$stores/$name.sqlite" --quiet > /dev/null
  "$podsim" sweep "$sweep" --store "$stores/$name.sqlite" --export csv -o "results/$name.csv"
done

done_rows="FROM results WHERE status = 'done'"
by_slices="SELECT slice_count AS x, replace(workload, '-block', '') || ' ' || pass AS series, round(100 * mfu, 2) AS percent $done_rows ORDER BY point"
plot slice_count_gpt3 "GPT-3 on 32x8, 256 sequences" "slice count S" "$by_slices"
plot slice_count_megatron "Megatron-NLG on 32x8, 256 sequences" "slice count S" "$by_slices"
plot slice_count_asplos "32x8, 256 sequences" "slice count S" "$by_slices"
best="CASE WHEN slice_count IS NULL AND algorithm = 'meshslice' THEN ' best S' ELSE '' END"
plot weak_scaling "Weak scaling, GPT-3 forward" "mesh" \
  "SELECT slice AS x, algorithm || $best AS series, round(100 * mfu, 2) AS percent $done_rows AND workload = 'gpt3-block' AND pass = 'forward' ORDER BY point"
plot mesh_shape "2048 chips" "mesh" \
  "SELECT slice AS x, replace(workload, '-block', '') || ' ' || pass AS series, round(100 * mfu, 2) AS percent $done_rows AND slice_count IS NULL ORDER BY point"
plot strong_scaling "Strong scaling, 64 sequences, GPT-3 forward" "mesh" \
  "SELECT slice AS x, algorithm AS series, round(100 * mfu, 2) AS percent $done_rows AND workload = 'gpt3-block' AND pass = 'forward' ORDER BY point"
plot autotune "Tuned, forward and backward: the best mesh" "chips" \
  "SELECT devices AS x, replace(workload, '-block', '') AS series, round(100 * max(mfu), 2) AS percent $done_rows GROUP BY devices, workload ORDER BY devices"
echo "results in $PWD/results"
