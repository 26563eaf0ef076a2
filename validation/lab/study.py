"""The study: every run of a validation.textproto on labs. What is measured goes, run by run, into files beside it:

measurements.csv   of each run every repeated time, when and beside what load: a study that was cut off goes on behind the last one
observations.csv   the median of each run, for `podsim validate`

Runs whose names begin with "survey: " come first; a machine is fitted to them, and to nothing else.
"""

import csv
import datetime
import os
import pathlib
import platform
import re
import statistics
import subprocess
import tempfile
import time

import kernel
import mpi
import survey
from launch import launched, podsim, words_of
from network import LabError, read_network

FOLDER = mpi.ROOT / "validation" / "datasets" / "lab_4x4"
# Fields that decide which chips and cables there are; others only say what runs on them.
OF_TOPOLOGY = ("slice", "wrap", "topology", "pods", "fail", "degrade")
COLUMNS = ("run", "devices", "date", "load", "core_s", "seconds")
DISAGREE = 0.05  # (longest - least) / median, from which a run is repeated
MOST_LAUNCHES = 3
FITTED = ("link.bandwidth", "link.latency")  # to the survey, in `podsim validate` as well

RUN = re.compile(r'run \{ name: "([^"]+)" scenario \{ (.*) \} \}')
FIELD = re.compile(r'(\w+): (?:"([^"]*)"|(\S+))')


def read_runs(folder):
    """Name and fields of each, of one that stands on one line."""
    file = folder / "validation.textproto"
    found = [RUN.fullmatch(line) for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("run {")]
    if not found or None in found:
        raise LabError(f'{file}: expected lines run {{ name: "..." scenario {{ ... }} }}')
    return [(match[1], {name: text or number for name, text, number in FIELD.findall(match[2])}) for match in found]


def read_measured(folder):
    """The rows of measurements.csv by run."""
    file = folder / "measurements.csv"
    if not file.exists():
        return {}
    with open(file, encoding="utf-8", newline="") as text:
        # A last line that was cut off (drop_cut_line()) is as if it was not there.
        whole = [line for line in text if line.endswith("\n") and not line.startswith("#")]
    return {row["run"]: {**row, "seconds": [float(one) for one in row["seconds"].split()]} for row in csv.DictReader(whole)}


def drop_cut_line(file):
    """A study that was killed may have left a part of a line: the next row would go on behind it."""
    text = file.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        file.write_bytes(whole)


def spread(seconds):
    return (max(seconds) - min(seconds)) / statistics.median(seconds)


def conditions():
    """Of this computer, for the heads of files."""
    cpu = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if line.startswith("model name")), platform.machine())
    version = subprocess.run(["mpirun", "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.split("\n")[0].split()[-1]
    priority = "first come ranks, by SCHED_FIFO" if mpi.priority([]) else "ranks have no priority"
    return f"{os.cpu_count()} cores of {cpu}, Linux {platform.release()}, Open MPI {version}; {priority}"


class Labs:
    """One lab at a time, of a topology."""

    def __init__(self, name, folder):
        self.name, self.folder, self.fields, self.network = f"{name[:11]}study", folder, None, None

    def __enter__(self):
        kernel.down(self.name)  # of a study that was killed
        return self

    def __exit__(self, *_):
        kernel.down(self.name)

    def take(self, fields):
        fields = {name: text for name, text in fields.items() if name in OF_TOPOLOGY}
        if fields == self.fields:
            return
        kernel.down(self.name)
        text = podsim("show", "topology", "--machine", str(self.folder / "base.textproto"), *words_of(self.folder, fields), "--routes", "json")
        self.network = read_network(text, "podsim show topology")
        kernel.up(self.name, self.network, text)
        self.fields = fields


def calibrated(folder, store):
    """The machine that the survey gives, in a file in the folder `store`. Some schedules depend on it, as how many chunks of a message are on their way."""
    file, rows = pathlib.Path(store) / "fitted.textproto", pathlib.Path(store) / "survey.csv"
    write_rows(rows, [row for row in rows_of(folder) if row["run"].startswith(survey.OF_SURVEY)])
    only = [word for value in FITTED for word in ("--only", value)]
    podsim("calibrate", str(rows), "--steps", str(folder / "validation.textproto"), "--base", str(folder / "base.textproto"), "--slice", "2", *only, "-o", str(file))
    return str(file)


def measured(labs, machine, folder, name, fields, repeat):
    """A row of measurements.csv. Where repeated times disagree, others are taken as well, and all count."""
    labs.take(fields)
    load, seconds, core = os.getloadavg()[0], [], 0.0
    for _ in range(MOST_LAUNCHES):
        said = launched(labs.name, list(range(labs.network.chips)), machine, folder, fields, repeat)
        if not seconds or said["makespan_s"] < min(seconds):
            core = said["compute_s"]
        seconds += said["makespans_s"]
        if spread(seconds) <= DISAGREE:
            break
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"run": name, "devices": said["ranks"], "date": date, "load": f"{load:.1f}", "core_s": f"{core:.6f}", "seconds": " ".join(f"{one:.6f}" for one in seconds)}


def rows_of(folder):
    """Observations of what is measured, in the order of the study."""
    found = read_measured(folder)
    measured_runs = [found[name] for name, _ in read_runs(folder) if name in found]
    return [{"op": "run", "devices": row["devices"], "seconds": f"{statistics.median(row['seconds']):.6f}", "run": row["run"], "spread": f"{spread(row['seconds']):.4f}"} for row in measured_runs]


def write_rows(file, rows, head=""):
    with open(file, "w", encoding="utf-8", newline="") as output:
        output.write(head)
        writer = csv.DictWriter(output, ["op", "devices", "bytes", "seconds", "run", "spread"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_observations(folder):
    head = "# Source: this repository, validation/lab/lab study; measurements.csv has the computer and every time\n# Derived: seconds = the median of a run's times, spread = (longest - least) / median.\n"
    write_rows(folder / "observations.csv", rows_of(folder), head)


def add_options(verb):
    verb.add_argument("folder", nargs="?", type=pathlib.Path, default=FOLDER, metavar="FOLDER", help="with validation.textproto and base.textproto (validation/datasets/lab_4x4)")
    verb.add_argument("--only", default="", metavar="NAME", help="runs whose names begin so")
    verb.add_argument("--every", type=int, default=1, metavar="N", help="one of N runs: to try a study (1)")
    verb.add_argument("--repeat", type=int, default=3, help="times of each run (3)")
    verb.add_argument("--again", action="store_true", help="forget what is measured already")


def study(name, options):
    folder = options.folder.resolve()
    runs = read_runs(folder)
    if options.again:
        (folder / "measurements.csv").unlink(missing_ok=True)
    known = read_measured(folder)
    of_survey = [one for one in runs if one[0].startswith(survey.OF_SURVEY)]
    others = [one for one in runs if one not in of_survey]
    left = [one for one in of_survey + others[:: max(options.every, 1)] if one[0] not in known and (one in of_survey or one[0].startswith(options.only))]
    # The survey first; runs on one lab follow one another.
    left.sort(key=lambda one: [one not in of_survey, *(one[1].get(field, "") for field in OF_TOPOLOGY)])
    with Labs(name, folder) as labs, tempfile.TemporaryDirectory() as store:
        machine = None
        file = folder / "measurements.csv"
        if not known:
            head = f"# {conditions()}\n# load: the mean of one minute before the run; core_s: core tasks of the rank that has most, in the fastest run; seconds: every repeated time\n{','.join(COLUMNS)}\n"
            file.write_text(head, encoding="utf-8")
        else:
            drop_cut_line(file)
        began = time.monotonic()
        for number, (run, fields) in enumerate(left, 1):
            if machine is None and not run.startswith(survey.OF_SURVEY):
                machine = calibrated(folder, store)
            row = measured(labs, machine or str(folder / "base.textproto"), folder, run, fields, options.repeat)
            with open(file, "a", encoding="utf-8", newline="") as output:
                csv.DictWriter(output, COLUMNS, lineterminator="\n").writerow(row)
            seconds = [float(one) for one in row["seconds"].split()]
            rest = (time.monotonic() - began) / number * (len(left) - number) / 60
            print(f"{number} of {len(left)}: {run}: {1e3 * statistics.median(seconds):.1f} ms, spread {100 * spread(seconds):.1f} %, load {row['load']}; {rest:.0f} min left", flush=True)
    write_observations(folder)
    print(f"{len(read_measured(folder))} of {len(runs)} runs in {folder / 'observations.csv'}")
    return 0
