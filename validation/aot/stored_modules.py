#!/usr/bin/env python3
"""Runs every stored module as it is: machine, slice, mesh and devices come from the JSON beside it.

usage: stored_modules.py PODSIM [--update]

Prints what differs from results.csv and ends with 1, also where a module is refused, or where the ledger of the run has another count or other bytes of a collective
than `show hlo` counts in the text, or does not add up to the exposed time; --update writes results.csv instead. Columns: time, core and exposed
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


def json_of(podsim, module, *words):
    """The answer, or why there is none."""
    done = subprocess.run([podsim, *words, str(module), *TOLD.get(name_of(module), []), "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, f"status {done.returncode}: {done.stderr.strip().replace(str(HERE), '.')[:300]}"
    return json.loads(done.stdout), ""


def name_of(module):
    return module.name.removesuffix(".hlo.gz")


def ledger_problems(run, shown):
    """Where what the schedule sends is not what the text says: one comes from tasks that were simulated, the other from instructions."""
    ledger = {row["name"]: row for row in run["collectives"]}
    exposed = sum(row["exposed_s"] for row in ledger.values())
    if abs(exposed - run["exposed_communication_s"]) > 1e-9 * exposed:
        yield f"the ledger adds up to {exposed} s, exposed are {run['exposed_communication_s']} s"
    for counted in shown["collectives"]:
        row = ledger.get(counted["runs_as"]) or ledger.get(counted["instruction"])
        if row is None:
            yield f"{counted['instruction']} is not in the ledger"
        elif (row["count"], row["bytes"]) != (counted["count"], counted["bytes"]):
            yield f"{counted['instruction']}: {counted['count']} of {counted['bytes']} bytes in the text, {row['count']} of {row['bytes']} in the ledger"


def row_of(podsim, module):
    """Its line of results.csv, and what is wrong with its ledger."""
    name = name_of(module)
    run, why_not = json_of(podsim, module, "run", "--hlo")
    if run is None:
        return [name, why_not], []
    shown, why_not = json_of(podsim, module, "show", "hlo")
    problems = list(ledger_problems(run, shown)) if shown is not None else [f"show hlo: {why_not}"]
    coverage = run["coverage"]
    in_all = sum(coverage[kind]["time_s"] for kind in ("known", "estimated", "lower_bound", "unknown")) or 1

    def share(kind):
        return f"{coverage[kind]['time_s'] / in_all:.4f}"

    memory = run["module_memory_bytes"]
    row = [
        name,
        *(f"{run[key] * 1e6:.3f}" for key in ("makespan_s", "compute_s", "exposed_communication_s")),
        *(f"{memory[key] / 1e6:.3f}" for key in ("hbm_peak", "hbm_allocated")),
        share("known"),
        share("estimated"),
        " ".join(f"{target} x{count}" for kind in ("unknown", "lower_bound") for target, count in sorted(coverage[f"{kind}_names"].items())),
    ]
    return row, problems


def main():
    words = [word for word in sys.argv[1:] if word != "--update"]
    if len(words) != 1 or words[0].startswith("-"):
        sys.exit(__doc__)
    modules = sorted((HERE / "modules").glob("*.hlo.gz"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda module: row_of(words[0], module), modules))
    rows = [row for row, _ in found]
    problems = [f"{row[0]}: {problem}" for row, of_row in found for problem in of_row]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEADING, *rows])
    if "--update" in sys.argv:
        RESULTS.write_text(text.getvalue(), encoding="utf-8")
        return 0
    stored = {line.split(",", 1)[0]: line for line in RESULTS.read_text(encoding="utf-8").splitlines()}
    now = {line.split(",", 1)[0]: line for line in text.getvalue().splitlines()}
    different = [name for name in sorted(stored.keys() | now.keys()) if stored.get(name) != now.get(name)]
    for name in different:
        print(f"- {stored.get(name, name + ': not stored')}\n+ {now.get(name, name + ': no such module')}")
    refused = [row for row in rows if len(row) == 2]
    for row in refused:
        print(": ".join(row))
    for problem in problems:
        print(problem)
    print(f"{len(rows)} modules, {len(refused)} refused, {len(different)} of them other than results.csv has them, {len(problems)} collectives other in the ledger than in the text")
    return 1 if different or refused or problems else 0


if __name__ == "__main__":
    sys.exit(main())
