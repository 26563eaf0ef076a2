"""What a fit wants to know of a lab: messages between two neighbours, one way and both ways, and what a rank computes, as observations for `podsim calibrate`."""

import csv
import os
import pathlib
import subprocess
import tempfile

import batches
import mpi
from network import LabError

# What a bucket holds passes at once, whatever its rate: of smaller inputs, half of which may be a message, a time says nothing of the rate.
LEAST_BYTES = 10 * batches.BURST_BYTES
SMALLEST, STEP = 1 << 15, 2  # bytes; from one size to the next
REPEATS = 10  # of a size in a round, one way


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
    status = mpi.run(lab, chips, ["--schedule", str(schedule), "--repeat", str(REPEATS * options.rounds), "-o", str(found)], subprocess.DEVNULL)
    if status != 0:
        raise LabError(f"podsim_mpirun ended with status {status}")
    return rows_of(found)


def rows_of(file):
    with open(file, encoding="utf-8", newline="") as text:
        return list(csv.DictReader(line for line in text if not line.startswith("#")))


def is_of_the_rate(row):
    return int(row["devices"]) == 1 or int(row["bytes"]) >= LEAST_BYTES


def survey(lab, network, options):
    chips = neighbours(network)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        both = folder / "both.csv"
        asked = ["--survey", str(both), "--max-bytes", f"{options.max_bytes}B", "--rounds", str(options.rounds), "--seconds-each", str(options.seconds_each)]
        status = mpi.run(lab, chips, asked)
        if status != 0:
            return status
        rows = [row for row in rows_of(both) if is_of_the_rate(row)]
        for size in sizes(options.max_bytes):
            rows += one_way(lab, chips, size, options, folder)
    with open(options.file, "w", encoding="utf-8", newline="") as file:
        load = os.getloadavg()[0]
        file.write(f"# lab {lab}: chips {' and '.join(network.names[chip] for chip in chips)} of {network.machine} {network.slice}; load {load:.1f} on {os.cpu_count()} cores\n")
        writer = csv.DictWriter(file, dict.fromkeys(column for row in rows for column in row), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"lab {lab}: {len(rows)} observations in {options.file}")
    return 0
