#!/bin/sh
# Makes the fitted values of shipped machines again from the stored measurements, and says where a machine file has others.
#
#     validation/fits/make.sh build/podsim
set -eu
podsim=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Products in bf16 of an H100 and, the same chip, of an H200.
"$podsim" calibrate "$root/validation/datasets/gemm_bf16_h100/observations.csv" --base dgx_h100:spec --slice 1x1 -o "$folder/h100.textproto" --quiet > "$folder/h100.txt"
value() { "$podsim" show machine --machine "$1" --format csv | grep '^chip.matmul_efficiency,' | cut -d, -f2; }
fitted=$(value "$folder/h100.textproto")
status=0
for machine in dgx_h100 dgx_h200; do
  if [ "$(value "$machine")" = "$fitted" ]; then
    echo "$machine: chip.matmul_efficiency is the fit to gemm_bf16_h100"
  else
    echo "$machine: chip.matmul_efficiency is another than the fit to gemm_bf16_h100: $fitted" >&2
    status=1
  fi
done
exit $status
