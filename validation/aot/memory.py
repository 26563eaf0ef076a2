#!/usr/bin/env python3
"""Memory of stored modules beside XLA's own figures.

usage: memory.py PODSIM [DIR]     DIR: NAME.hlo.gz with NAME.json beside it; modules/ of this folder if left out

Peak: XLA's peak_memory_in_bytes is parameters and results, those in pinned memory of the host too, and the largest live set of temporaries of any one
memory space, so podsim's is max(hbm_peak, parameters + outputs - aliased + max(vmem, cmem)) + host, without what of the host's memory is temporary in XLA's analysis. Where VMEM or CMEM
decides it, "VMEM" stands behind, and the peak is counted apart: there XLA adds up values of one place that overlap, each of which it counts (README.md). Allocation: argument +
output + temp - alias in HBM.
"""
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from stored_modules import TOLD


def ours(podsim, module, host_temporaries):
    with tempfile.NamedTemporaryFile(suffix=".hlo") as text:
        text.write(gzip.decompress(module.read_bytes()))
        text.flush()
        shown = subprocess.run([podsim, "show", "hlo", text.name, *TOLD.get(module.name.removesuffix(".hlo.gz"), []), "--format", "json"], capture_output=True, text=True)
    if shown.returncode != 0:
        return None
    memory = json.loads(shown.stdout)["module_memory_bytes"]
    places = memory["parameters"] + memory["outputs"] - memory["aliased"]
    on_chip = places + max(memory["vmem"], memory["cmem"])
    peak = max(memory["hbm_peak"], on_chip) + max(0, memory["host"] - host_temporaries)
    return peak, memory["hbm_allocated"], on_chip > memory["hbm_peak"]


def analysis_of(path):
    told = json.loads(path.read_text())
    return told.get("memory", told)


def xlas(told):
    def size(name):
        return told.get(name + "_size_in_bytes", told.get(name)) or 0

    return told.get("peak_memory_in_bytes") or 0, size("argument") + size("output") + size("temp") - size("alias")


def main():
    podsim = sys.argv[1]
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).parent / "modules"
    ratios = [[], [], []]  # of peaks in HBM, allocations, peaks in VMEM or CMEM
    print("| module | peak, MB | XLA's | ratio | allocation, MB | XLA's | ratio |\n|---|---|---|---|---|---|---|")
    for module in sorted(folder.glob("*.hlo.gz")):
        beside = module.with_name(module.name.removesuffix(".hlo.gz") + ".json")
        if not beside.exists():
            continue
        name = beside.stem
        told = analysis_of(beside)
        found = ours(podsim, module, told.get("host_temp_size_in_bytes", 0))
        if found is None:
            print(f"| {name} | not read | | | | | |")
            continue
        cells = []
        for which, (mine, theirs) in enumerate(zip(found[:2], xlas(told))):
            if theirs == 0:
                cells += [f"{mine / 1e6:.1f}", "", ""]
                continue
            ratios[2 if which == 0 and found[2] else which].append((mine / theirs, name))
            cells += [f"{mine / 1e6:.1f}", f"{theirs / 1e6:.1f}", f"{mine / theirs:.3f}" + (" VMEM" if which == 0 and found[2] else "")]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for what, found in zip(("peak in HBM", "allocation", "peak in VMEM or CMEM"), ratios):
        if found:
            worst = max(found, key=lambda row: abs(row[0] - 1))
            near = sum(0.95 <= ratio <= 1.05 for ratio, _ in found)
            print(f"\n{what}: median {statistics.median(r for r, _ in found):.4f}, within 5 %: {near} of {len(found)}, worst {worst[0]:.3f} ({worst[1]})")


if __name__ == "__main__":
    main()
