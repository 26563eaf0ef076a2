"""What a fit wants to know of a lab, measured between neighbours while all else is idle: runs and their times, for `podsim calibrate`. What a rank computes is not
measured: it lasts as long as --pace says."""

import csv
import os
import pathlib
import statistics

import mpi
import runs
from launch import launched
from network import FRAME, LabError

OF_SURVEY = "survey: "  # how the names of its runs begin
# What a bucket holds, a packet and a little more, passes at once, whatever its rate: of messages that are not much longer, a time says little of the rate.
LEAST_MESSAGE = 40 * FRAME
MACHINE = mpi.HERE / "machine.textproto"


def add_options(verb):
    verb.add_argument("--max-bytes", type=int, default=1 << 20, help="the largest message (1048576)")
    verb.add_argument("--repeat", type=int, default=5, help="how often each; the median stays (5)")


def neighbours(network):
    """Two chips with a cable between them, as fast as any; where chips are joined by switches alone, the first two."""
    between = [cable for cable in network.cables if max(cable.ends) < network.chips]
    if between:
        return list(max(between, key=lambda cable: min(cable.bytes_per_s)).ends)
    if network.chips < 2:
        raise LabError("a survey needs two chips")
    return [0, 1]


def row_of_four(network):
    """Four chips in a row, of which the ways from the first to the third and from the second to the fourth lie in it; None: there are none."""
    for first in range(network.chips):
        for third in range(network.chips):
            ahead = network.path(first, third) if first != third else []
            if len(ahead) != 3:
                continue
            for fourth in range(network.chips):
                if fourth not in ahead and network.path(ahead[1], fourth) == [ahead[1], third, fourth] and ahead[1] < network.chips:
                    return [*ahead, fourth]
    return None


def survey(lab, network, options):
    if options.max_bytes < 8 * LEAST_MESSAGE:
        raise LabError(f"--max-bytes: expected at least {8 * LEAST_MESSAGE}")
    two, four = neighbours(network), row_of_four(network)
    measured = list(runs.survey(options.max_bytes // runs.KiB, four is not None))
    file = pathlib.Path(options.file)
    if file.suffix != ".csv":
        raise LabError(f"expected FILE.csv, found {file}")
    rows = []
    for name, fields in measured:
        said = launched(lab, two if fields["slice"] == "2" else four, str(MACHINE), mpi.HERE, {field: str(text) for field, text in fields.items()}, options.repeat)
        seconds = statistics.median(said["makespans_s"])
        print(f"{name}: {1e3 * seconds:.2f} ms", flush=True)
        rows.append({"op": "run", "devices": said["ranks"], "bytes": "", "seconds": f"{seconds:.6f}", "run": name})
    with open(file, "w", encoding="utf-8", newline="") as output:
        names = " and ".join(network.names[chip] for chip in two)
        output.write(f"# lab {lab}: chips {names} of {network.machine} {network.slice}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        writer = csv.DictWriter(output, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    described = file.with_suffix(".textproto")
    described.write_text(f'format_version: 1\nmachine: "{MACHINE}"\n' + "".join(runs.line(name, fields) for name, fields in measured), encoding="utf-8")
    print(f"lab {lab}: {len(rows)} observations in {file}, their runs in {described}")
    return 0
