"""What a fit wants to know of a lab: messages between two neighbours, one way and both ways, and what a rank computes, as observations for `podsim calibrate`."""

import csv
import os
import pathlib
import subprocess
import tempfile

import mpi
from network import LabError

SMALLEST, STEP = 1024, 4  # bytes; from one size to the next


def add_options(verb):
    verb.add_argument("--max-bytes", type=int, default=1 << 20, help="the largest message (1048576)")
    verb.add_argument("--rounds", type=int, default=1, help="how often over all sizes; of each the least time stays (1)")
    verb.add_argument("--seconds-each", type=float, default=0.2, help="how long each size is repeated in a round (0.2)")


def neighbours(network):
    """Two chips with a cable between them, as fast as any; where chips are joined by switches alone, the first two."""
    between = [cable for cable in network.cables if max(cable.ends) < network.chips]
    if between:
        return list(max(between, key=lambda cable: min(cable.bytes_per_s)).ends)
    if network.chips < 2:
        raise LabError("a survey needs two chips")
    return [0, 1]


def sizes(most):
    size = SMALLEST
    while size <= most:
        yield size
        size *= STEP


def one_way(lab, chips, size, options, folder):
    """A stream of one message at a time: a broadcast to one other."""
    schedule, found = folder / "schedule.textproto", folder / "found.csv"
    asked = ["--collective", "broadcast", "--axis", "row", "--bytes", str(size), "--dtype", "f32"]
    done = subprocess.run([mpi.program("podsim"), "show", "schedule", "--machine", "ideal", "--slice", "2", *asked, "-o", str(schedule)], stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise LabError("podsim made no schedule for the survey")
    repeat = str(max(10, round(options.seconds_each * options.rounds / 0.01)))
    status = mpi.run(lab, chips, ["--schedule", str(schedule), "--repeat", repeat, "-o", str(found)], subprocess.DEVNULL)
    if status != 0:
        raise LabError(f"podsim_mpirun ended with status {status}")
    with open(found, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def survey(lab, network, options):
    chips = neighbours(network)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        both = folder / "both.csv"
        asked = ["--survey", str(both), "--max-bytes", str(options.max_bytes), "--rounds", str(options.rounds), "--seconds-each", str(options.seconds_each)]
        status = mpi.run(lab, chips, asked)
        if status != 0:
            return status
        with open(both, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(line for line in file if not line.startswith("#"))
            columns, rows = reader.fieldnames, list(reader)
        for size in sizes(options.max_bytes):
            rows += one_way(lab, chips, size, options, folder)
    with open(options.file, "w", encoding="utf-8", newline="") as file:
        load = os.getloadavg()[0]
        file.write(f"# lab {lab}: chips {' and '.join(network.names[chip] for chip in chips)} of {network.machine} {network.slice}; load {load:.1f} on {os.cpu_count()} cores\n")
        writer = csv.DictWriter(file, columns, restval="", extrasaction="raise", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"lab {lab}: {len(rows)} observations in {options.file}")
    return 0
