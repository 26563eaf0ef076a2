#!/usr/bin/env python3
"""What the Python module costs beside the simulator: import, a call, a timeline of 10 million task instances as numpy. Nothing is asserted.

usage: PYTHONPATH=build/python /usr/bin/python3 tools/python/scripts/bench.py
"""

import os
import statistics
import subprocess
import sys
import time

import podsim
from podsim._api import _Known, _words

FRESH = 15  # processes
BATCHES, CALLS = 20, 200
SMALL = {"slice": (2, 2), "collective": "all-gather", "axis": "row", "bytes": 1024, "algorithm": "ring"}
# 4,096 chips, S = 10: all-gathers along both axes and products, each device on its own.
LARGE = {"machine": "tpu_v4", "slice": (64, 64), "gemm": (655360, 81920, 81920), "algorithm": "meshslice", "slice_count": 10, "fold": "off", "force": True}


def fresh_seconds(imported):
    """Medians of a fresh process that imports numpy, and what is imported after it."""
    code = f"import time, numpy; began = time.perf_counter(); {imported}; print(time.perf_counter() - began)"
    return statistics.median(float(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout) for _ in range(FRESH))


def cpu_seconds(call):
    """Of a call, in the best batch."""
    batches = []
    for _ in range(BATCHES):
        began = time.process_time()
        for _ in range(CALLS):
            call()
        batches.append((time.process_time() - began) / CALLS)
    return min(batches)


def call_seconds():
    """Of a small run: the call; the command in C++ alone, its words ready; building the schedule and simulating it, as the run tells."""
    machine = podsim.machine("tpu_v4")
    known = _Known()
    words = _words(("run",), {"machine": machine, **SMALL}, known)
    command = cpu_seconds(lambda: podsim._core.call(words, known.machines, {}, {}, None, False))
    runs = [podsim.run(machine, **SMALL) for _ in range(CALLS)]
    return cpu_seconds(lambda: podsim.run(machine, **SMALL)), command, min(run.wall_s + run.build_s for run in runs)


def timed(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def main():
    print(f"podsim {podsim.version_and_build}, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(f"{'import beyond numpy':40}{fresh_seconds('import podsim'):10.3f} s     target 0.15 s")
    whole, command, simulated = call_seconds()
    print(f"{'a call of run(), CPU time':40}{whole * 1e6:10.0f} us")
    print(f"{'  beside the command in C++':40}{(whole - command) * 1e6:10.0f} us    target 100 us")
    print(f"{'  beside building and simulating':40}{(whole - simulated) * 1e6:10.0f} us    reading, laying out, checking and measuring included")

    run = podsim.run(**LARGE)
    timeline = run.timeline()
    seconds, (starts, sents) = timed(lambda: (timeline.start_ps, timeline.sent_ps))
    address = starts.__array_interface__["data"][0]
    shared = address == run.timeline().start_ps.__array_interface__["data"][0] and not starts.flags.owndata and not sents.flags.owndata
    print(f"\n{'timeline':40}{len(timeline) / 1e6:10.2f} million task instances of {run.devices} chips, simulated in {run.wall_s:.1f} s")
    print(f"{'  start_ps, sent_ps as numpy':40}{seconds:10.6f} s     target 0.2 s; {'views of the engine’s memory' if shared else 'COPIED'}")
    for name in ("end_ps", "device", "task", "unit"):
        print(f"{'  ' + name + ', computed':40}{timed(lambda: getattr(timeline, name))[0]:10.3f} s")
    print(f"{'  to_numpy(), one structured copy':40}{timed(timeline.to_numpy)[0]:10.3f} s")


if __name__ == "__main__":
    main()
