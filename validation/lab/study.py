"""The study: every run of a validation.textproto on labs, beside a survey of the same network. What is measured goes, run by run, into files beside it:

survey.csv         messages between two neighbours, as observations: all that a machine is fitted to
measurements.csv   of each run every repeated time, when and beside what load: a study that was cut off goes on behind the last one
observations.csv   the survey and the median of each run, for `podsim validate`
"""

import argparse
import csv
import datetime
import json
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
from network import LabError, read_network

FOLDER = mpi.ROOT / "validation" / "datasets" / "lab_4x4"
# Fields that decide which chips and cables there are; others only say what runs on them.
OF_TOPOLOGY = ("slice", "wrap", "topology", "pods", "fail", "degrade")
# A schedule is that of the whole system. Broken and slow cables are the lab's, slow chips podsim_mpirun's.
FAULTS = ("fail", "degrade", "straggler")
COLUMNS = ("run", "devices", "date", "load", "core_s", "seconds")
DISAGREE = 0.05  # (longest - least) / median, from which a run is repeated
MOST_LAUNCHES = 3
SURVEY = argparse.Namespace(max_bytes=1 << 20, repeat=5)
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


def words_of(folder, fields):
    """As options of podsim."""
    words = []
    for name, text in fields.items():
        words += ["--" + name.replace("_", "-"), str(folder / text) if name == "training" and text.endswith(".textproto") else text]
    return words


def podsim(*words, statuses=(0,)):
    done = subprocess.run([mpi.program("podsim"), *words, "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in statuses:
        raise LabError(f"podsim {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def read_measured(folder):
    """The rows of measurements.csv by run."""
    file = folder / "measurements.csv"
    if not file.exists():
        return {}
    with open(file, encoding="utf-8", newline="") as text:
        # A last line that was cut off is as if it was not there.
        whole = [line for line in text if line.endswith("\n") and not line.startswith("#")]
    return {row["run"]: {**row, "seconds": [float(one) for one in row["seconds"].split()]} for row in csv.DictReader(whole)}


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
    file = pathlib.Path(store) / "fitted.textproto"
    only = [word for value in FITTED for word in ("--only", value)]
    podsim("calibrate", str(folder / "survey.csv"), "--base", str(folder / "base.textproto"), "--slice", "2", *only, "-o", str(file))
    return str(file)


def launched(labs, machine, folder, fields, repeat):
    """What podsim_mpirun said of one launch: a warm-up and `repeat` runs."""
    with tempfile.TemporaryDirectory() as store:
        schedule, said = pathlib.Path(store) / "schedule.pb", pathlib.Path(store) / "said.json"
        whole = {name: text for name, text in fields.items() if name not in FAULTS}
        podsim("show", "schedule", "--machine", machine, *words_of(folder, whole), "--lowered", "-o", str(schedule))
        slow = ["--straggler", fields["straggler"]] if "straggler" in fields else []
        with open(said, "w", encoding="utf-8") as output:
            status = mpi.run(labs.name, list(range(labs.network.chips)), ["--schedule", str(schedule), "--repeat", str(repeat), "--pace", machine, *slow, "--format", "json"], output)
        if status != 0:
            raise LabError(f"podsim_mpirun ended with status {status}")
        return json.loads(said.read_text(encoding="utf-8"))


def measured(labs, machine, folder, name, fields, repeat):
    """A row of measurements.csv. Where repeated times disagree, others are taken as well, and all count."""
    labs.take(fields)
    load, seconds, core = os.getloadavg()[0], [], 0.0
    for _ in range(MOST_LAUNCHES):
        said = launched(labs, machine, folder, fields, repeat)
        if not seconds or said["makespan_s"] < min(seconds):
            core = said["compute_s"]
        seconds += said["makespans_s"]
        if spread(seconds) <= DISAGREE:
            break
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"run": name, "devices": said["ranks"], "date": date, "load": f"{load:.1f}", "core_s": f"{core:.6f}", "seconds": " ".join(f"{one:.6f}" for one in seconds)}


def surveyed(labs, folder):
    """The survey, between two chips of 4x4."""
    labs.take({"slice": "4x4"})
    survey.survey(labs.name, labs.network, argparse.Namespace(file=str(folder / "survey.csv"), **vars(SURVEY)))


def write_observations(folder, runs):
    """Returns how many runs have none yet."""
    rows, found = [], read_measured(folder)
    with open(folder / "survey.csv", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(line for line in text if not line.startswith("#")):
            rows.append({"op": row["op"], "devices": row["devices"], "bytes": row["bytes"], "seconds": row["seconds"], "dtype": row["dtype"], "schedule": row["schedule"], "source": "survey"})
    for name, _ in runs:
        if name in found:
            row = found[name]
            rows.append({"op": "run", "devices": row["devices"], "seconds": f"{statistics.median(row['seconds']):.6f}", "run": name, "spread": f"{spread(row['seconds']):.4f}", "source": "study"})
    with open(folder / "observations.csv", "w", encoding="utf-8", newline="") as file:
        file.write("# Source: this repository, validation/lab/lab study; measurements.csv has the computer and every time\n")
        file.write("# Derived: seconds = of a run the median of its times, spread = (longest - least) / median; of the survey the least of 5 times.\n")
        writer = csv.DictWriter(file, ["op", "devices", "bytes", "seconds", "dtype", "schedule", "run", "spread", "source"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return sum(name not in found for name, _ in runs)


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
        for file in ("survey.csv", "measurements.csv"):
            (folder / file).unlink(missing_ok=True)
    known = read_measured(folder)
    left = [(run, fields) for run, fields in runs[:: max(options.every, 1)] if run.startswith(options.only) and run not in known]
    # Runs on one lab follow one another.
    left.sort(key=lambda one: [one[1].get(field, "") for field in OF_TOPOLOGY])
    with Labs(name, folder) as labs, tempfile.TemporaryDirectory() as store:
        if not (folder / "survey.csv").exists():
            surveyed(labs, folder)
        machine = calibrated(folder, store)
        file = folder / "measurements.csv"
        if not known:
            head = f"# {conditions()}\n# load: the mean of one minute before the run; core_s: core tasks of the rank that has most, in the fastest run; seconds: every repeated time\n{','.join(COLUMNS)}\n"
            file.write_text(head, encoding="utf-8")
        began = time.monotonic()
        for number, (run, fields) in enumerate(left, 1):
            row = measured(labs, machine, folder, run, fields, options.repeat)
            with open(file, "a", encoding="utf-8", newline="") as output:
                csv.DictWriter(output, COLUMNS, lineterminator="\n").writerow(row)
            seconds = [float(one) for one in row["seconds"].split()]
            rest = (time.monotonic() - began) / number * (len(left) - number) / 60
            print(f"{number} of {len(left)}: {run}: {1e3 * statistics.median(seconds):.1f} ms, spread {100 * spread(seconds):.1f} %, load {row['load']}; {rest:.0f} min left", flush=True)
    missing = write_observations(folder, runs)
    print(f"{len(runs) - missing} of {len(runs)} runs in {folder / 'observations.csv'}")
    return 0
