"""What a fit wants to know of a lab: messages between two neighbours, one way and both ways at once, as observations for `podsim calibrate`. What a rank computes is
not measured: it lasts as long as --pace says."""

import csv
import os
import pathlib
import subprocess
import tempfile

import mpi
from network import FRAME, LabError

# One message at a time; one each way; and one each way that is added up on arrival.
OPERATIONS = {"broadcast": [], "permute": ["--shift", "1"], "all-reduce": []}
# What a bucket holds, a packet and a little more, passes at once, whatever its rate: of messages that are not much longer, a time says little of the rate.
LEAST_MESSAGE = 40 * FRAME


def add_options(verb):
    verb.add_argument("--max-bytes", type=int, default=1 << 20, help="the largest message; others are halves of it (1048576)")
    verb.add_argument("--repeat", type=int, default=10, help="how often each; the least time stays (10)")


def neighbours(network):
    """Two chips with a cable between them, as fast as any; where chips are joined by switches alone, the first two."""
    between = [cable for cable in network.cables if max(cable.ends) < network.chips]
    if between:
        return list(max(between, key=lambda cable: min(cable.bytes_per_s)).ends)
    if network.chips < 2:
        raise LabError("a survey needs two chips")
    return [0, 1]


def sizes(most):
    """Inputs in bytes, the smallest first; the messages of an all-reduce are halves of them."""
    found = []
    while most >= 2 * LEAST_MESSAGE:
        found.insert(0, most // 8 * 8)
        most //= 2
    if not found:
        raise LabError(f"--max-bytes: expected at least {2 * LEAST_MESSAGE}")
    return found


def observed(lab, chips, operation, size, options, folder):
    """The rows of one operation of one size; its progress is told."""
    schedule, found = folder / "schedule.textproto", folder / "found.csv"
    asked = ["--collective", operation, "--axis", "row", "--bytes", str(size), "--dtype", "f32", *OPERATIONS[operation]]
    done = subprocess.run([mpi.program("podsim"), "show", "schedule", "--machine", "ideal", "--slice", "2", *asked, "-o", str(schedule)], stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise LabError("podsim made no schedule for the survey")
    status = mpi.run(lab, chips, ["--schedule", str(schedule), "--repeat", str(options.repeat), "-o", str(found)], subprocess.DEVNULL)
    if status != 0:
        raise LabError(f"podsim_mpirun ended with status {status}")
    with open(found, encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(line for line in text if not line.startswith("#")))
    for row in rows:
        print(f"{operation} {size} bytes: {1e3 * float(row['seconds']):.2f} ms", flush=True)
    return rows


def survey(lab, network, options):
    chips = neighbours(network)
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for size in sizes(options.max_bytes) for operation in OPERATIONS for row in observed(lab, chips, operation, size, options, pathlib.Path(folder))]
    with open(options.file, "w", encoding="utf-8", newline="") as file:
        names = " and ".join(network.names[chip] for chip in chips)
        file.write(f"# lab {lab}: chips {names} of {network.machine} {network.slice}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"lab {lab}: {len(rows)} observations in {options.file}")
    return 0
