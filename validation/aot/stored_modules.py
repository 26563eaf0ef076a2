#!/usr/bin/env python3
"""Runs every stored module as it is: machine, slice, mesh and devices come from the JSON beside it.

usage: stored_modules.py PODSIM [--update]

Prints what differs from results.csv and ends with 1, also where a module is refused; --update writes it instead. Columns: time, core and exposed
communication in us; peak of HBM and its allocation in MB; share of the time whose cost is known or estimated; targets of unknown cost, or of a lower bound.
"""

import concurrent.futures
import csv
import io
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results.csv"
# What a module cannot tell.
TOLD = {"branches_v5e": ["--trip-count", "while.7=4"]}
HEADING = ["module", "time_us", "core_us", "exposed_us", "peak_mb", "allocated_mb", "known", "estimated", "unknown"]


def row_of(podsim, module):
    name = module.name.removesuffix(".hlo.gz")
    done = subprocess.run([podsim, "run", "--hlo", str(module), *TOLD.get(name, []), "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [name, f"status {done.returncode}: {done.stderr.strip().replace(str(HERE), '.')[:300]}"]
    run = json.loads(done.stdout)
    coverage = run["coverage"]
    in_all = sum(coverage[kind]["time_s"] for kind in ("known", "estimated", "lower_bound", "unknown")) or 1

    def share(kind):
        return f"{coverage[kind]['time_s'] / in_all:.4f}"

    memory = run["module_memory_bytes"]
    return [
        name,
        *(f"{run[key] * 1e6:.3f}" for key in ("makespan_s", "compute_s", "exposed_communication_s")),
        *(f"{memory[key] / 1e6:.3f}" for key in ("hbm_peak", "hbm_allocated")),
        share("known"),
        share("estimated"),
        " ".join(f"{target} x{count}" for kind in ("unknown", "lower_bound") for target, count in sorted(coverage[f"{kind}_names"].items())),
    ]


def main():
    words = [word for word in sys.argv[1:] if word != "--update"]
    if len(words) != 1 or words[0].startswith("-"):
        sys.exit(__doc__)
    modules = sorted((HERE / "modules").glob("*.hlo.gz"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(lambda module: row_of(words[0], module), modules))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEADING, *rows])
    if "--update" in sys.argv:
        RESULTS.write_text(text.getvalue(), encoding="utf-8")
        return 0
    stored = {line.split(",", 1)[0]: line for line in RESULTS.read_text(encoding="utf-8").splitlines()}
    found = {line.split(",", 1)[0]: line for line in text.getvalue().splitlines()}
    different = [name for name in sorted(stored.keys() | found.keys()) if stored.get(name) != found.get(name)]
    for name in different:
        print(f"- {stored.get(name, name + ': not stored')}\n+ {found.get(name, name + ': no such module')}")
    refused = [row for row in rows if len(row) == 2]
    for row in refused:
        print(": ".join(row))
    print(f"{len(rows)} modules, {len(refused)} refused, {len(different)} of them other than results.csv has them")
    return 1 if different or refused else 0


if __name__ == "__main__":
    sys.exit(main())
