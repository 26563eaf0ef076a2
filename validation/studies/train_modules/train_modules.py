"""Runs compiled train steps by podsim and prints them as a table.

usage: train_modules.py PODSIM FOLDER
"""

import itertools
import json
import pathlib
import subprocess
import sys

MODULES = [  # file, slice, mesh
    ("hlo_llama31_8b_bf16_1x8.hlo", "1x8", "fsdp=8"),
    ("hlo_llama3_8b_bf16_activation_offloading_1x8.hlo", "1x8", "fsdp=8"),
    ("hlo_llama31_70b_bf16_16x8.hlo", "16x8", "data=2,fsdp=64"),
    ("hlo_llama31_405b_bf16_64x8.hlo", "64x8", "fsdp=512"),
]


def main():
    podsim, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    print("| module | order | all-reduces | step | MFU | exposed communication | peak memory, of parameters |")
    print("|---|---|---|---|---|---|---|")
    for (name, shape, mesh), order, rewrite in itertools.product(MODULES, ("text", "overlap"), (False, True)):
        command = [podsim, "run", "--hlo", str(folder / name), "--machine", "dgx_h100", "--slice", shape, "--mesh", mesh, "--hlo-schedule", order, "--collectives", "by-dimension", "--format", "json"]
        run = json.loads(subprocess.run(command + (["--rewrite", "reduce-scatter"] if rewrite else []), check=True, capture_output=True, text=True).stdout)
        print(f"| {name.removeprefix('hlo_').removesuffix('.hlo')} | {order} | {'reduce-scatters' if rewrite else 'as they are'} | {run['makespan_s']:.4g} s | {100 * run['mfu']:.1f} % "
              f"| {run['exposed_communication_s']:.3g} s | {run['peak_memory_bytes'] / 1e9:.1f} GB, {run['module_memory_bytes']['parameters'] / 1e9:.1f} GB |")


main()
