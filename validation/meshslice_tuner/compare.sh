#!/usr/bin/env bash
# The plan of the published tuner and podsim's own, simulated on the same machine: 2-D tori of TPU v4, the products of a GPT-3 block, forward and
# backward. Prints a table (Markdown). Takes some ten seconds.
#
# usage: compare.sh [PODSIM]      default build/podsim
set -euo pipefail
podsim="$(realpath "${1:-build/podsim}")"
cat << 'HEAD'
| parameters | chips | its shape | its S | simulated | podsim's mesh | plan | simulated | faster by |
|---|---|---|---|---|---|---|---|---|
HEAD
for parameters in tpu_measured simulation_fit; do
  for chips in 32 64 128 256 512 1024 2048; do
    "$podsim" tune --machine tpu_v4:spec --chips "$chips" --slices 2-d --workload gpt3-block --only gemm --top 1 --quiet --format json \
      --baseline "meshslice-reference:$parameters" | python3 -c '
import json, sys
found = json.load(sys.stdin)
theirs, ours = found["baseline"], found["plans"][0]
counts = [layer["slice_count"] for layer in theirs["layers"]]
layers = ["{}{}{}".format("t-" if l["transposed"] else "", l["dataflow"], " S={}".format(l["slice_count"]) if l["slice_count"] else " " + l["algorithm"])
          for l in ours["layers"]]
row = [sys.argv[1], sys.argv[2], "{row}x{col}".format(**theirs["mesh"]), " ".join(map(str, counts)), "{:.2f} ms".format(1e3 * theirs["predicted_s"]),
       "{row}x{col}".format(**ours["mesh"]), ", ".join(layers), "{:.2f} ms".format(1e3 * ours["predicted_s"]),
       "{:.1f} %".format(100 * (1 - ours["predicted_s"] / theirs["predicted_s"]))]
print("| " + " | ".join(row) + " |")
' "$parameters" "$chips"
  done
done
