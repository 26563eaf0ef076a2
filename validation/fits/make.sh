#!/bin/sh
# Makes the fitted values of shipped machines again from the stored measurements, and says where a machine file has others.
#
#     validation/fits/make.sh build/podsim
set -eu
podsim=$1
datasets=$(cd "$(dirname "$0")/../datasets" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

# A value of a machine: a number in three digits, a surface as it stands.
value() {
  "$podsim" show machine --machine "$1" --format csv | grep "^$2," | cut -d, -f2 | LC_ALL=C awk 'NF > 2 { print; next } { printf "%.3g %s\n", $1, $2 }'
}

# fit PATH DATASET "OPTIONS OF calibrate" MACHINE...: whether PATH of each MACHINE is what is fitted to DATASET.
fit() {
  path=$1 dataset=$2 options=$3
  shift 3
  # shellcheck disable=SC2086
  "$podsim" calibrate "$datasets/$dataset/observations.csv" $options -o "$folder/fit.textproto" --quiet > "$folder/fit.txt"
  fitted=$(value "$folder/fit.textproto" "$path")
  for machine in "$@"; do
    if [ "$(value "$machine" "$path")" = "$fitted" ]; then
      echo "$machine: $path is the fit to $dataset"
    else
      echo "$machine: $path is another than the fit to $dataset: $fitted" >&2
      status=1
    fi
  done
}

# Products in bf16. An H200 has the chip of an H100; of B200 and GB200 it is the nearest relative.
fit chip.matmul_efficiency gemm_bf16_h100 "--base dgx_h100:spec --slice 1x1" dgx_h100 dgx_h200 dgx_b200 gb200_nvl72
fit chip.matmul_efficiency gemm_bf16_a100 "--base dgx_a100:spec --slice 1x1" dgx_a100
# Training steps of MaxText; v3 and v6e have the values of their relatives.
fit chip.matmul_efficiency tpu_v4_training "--base tpu_v4 --slice v4-128 --only chip.matmul_efficiency" tpu_v4 tpu_v3
fit chip.matmul_efficiency tpu_v5e_training "--base tpu_v5e --slice 16x16 --only chip.matmul_efficiency" tpu_v5e tpu_v6e
fit chip.matmul_efficiency tpu_v5p_training "--base tpu_v5p --slice v5p-128 --only chip.matmul_efficiency" tpu_v5p
fit chip.hbm_bandwidth tpu7x_hbm_copy "--base tpu7x:spec --slice 1x1x1" tpu7x
exit $status
