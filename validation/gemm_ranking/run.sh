#!/usr/bin/env bash
# The feed-forward layers of GPT-3 and Megatron-NLG (256 sequences of 2048 tokens, bf16) on 256 chips of TPU v4 as 2-D tori: every GEMM algorithm
# in every dataflow. Prints one table per layer, or with --csv DIR writes one file per layer. README.md beside this explains the ranking.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
podsim=${PODSIM:-$here/../../build/podsim}
csv=
if [[ ${1:-} == --csv ]]; then
  csv=${2:?--csv needs a folder}
  mkdir -p "$csv"
fi

layer() {
  local name=$1 n=$2 k=$3
  shift 3
  local arguments=(compare --machine tpu_v4:spec --slice 16x16,32x8 --gemm "m=524288,n=$n,k=$k"
    --algorithms collective,meshslice,summa,cannon,wang,1d-os,1d-ls,1d-fsdp,1d-megatron --dataflow os,ls,rs --slice-count 1,4,16 "$@")
  if [[ -n $csv ]]; then
    "$podsim" "${arguments[@]}" --format csv -o "$csv/$name.csv"
  else
    printf '\n== %s\n' "$name"
    "$podsim" "${arguments[@]}"
  fi
}

layer gpt3_ff1 49152 12288
layer gpt3_ff2 12288 49152
layer megatron_nlg_ff1 81920 20480
layer megatron_nlg_ff2 20480 81920
layer gpt3_ff1_without_slice_copies 49152 12288 --slice-copies off
layer megatron_nlg_ff1_without_slice_copies 81920 20480 --slice-copies off
