#!/usr/bin/env bash
# What ./build.sh runs at its end: the result that a new user sees first. One GPT-3 feed-forward layer on 256 chips of TPU v4, MeshSlice
# against gathering everything first, on a hypothetical 32x8 torus and on the slice the vendor offers; before it, the same kind of schedule
# proven right on real numbers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

say() {
  printf '\n$'
  printf ' %s' "$@"
  printf '\n'
  "$@"
}

say build/podsim check --mesh row=4,col=2 --gemm m=512,n=1024,k=256 --algorithm meshslice --slice-count 4

say build/podsim compare --machine tpu_v4 --slice 32x8,4x8x8 --mesh row=32,col=8 \
  --gemm m=524288,n=49152,k=12288 --dataflow os --algorithms collective,meshslice --slice-count 1,2,4,8,16,24,48
