"""One launch of podsim_mpirun on a lab: the schedule of a run of `podsim run`, whose fields are words."""

import json
import pathlib
import subprocess
import tempfile

import mpi
from network import LabError

# A schedule is that of the whole system. Broken and slow cables are the lab's, slow chips podsim_mpirun's.
FAULTS = ("fail", "degrade", "straggler")


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


def launched(lab, chips, machine, folder, fields, repeat):
    """What podsim_mpirun said of it: a warm-up and `repeat` runs, rank i on the i-th of these chips. Files that fields name lie in `folder`."""
    with tempfile.TemporaryDirectory() as store:
        schedule, said = pathlib.Path(store) / "schedule.pb", pathlib.Path(store) / "said.json"
        whole = {name: text for name, text in fields.items() if name not in FAULTS}
        podsim("show", "schedule", "--machine", machine, *words_of(folder, whole), "--lowered", "-o", str(schedule))
        slow = ["--straggler", fields["straggler"]] if "straggler" in fields else []
        with open(said, "w", encoding="utf-8") as output:
            status = mpi.run(lab, chips, ["--schedule", str(schedule), "--repeat", str(repeat), "--pace", machine, *slow, "--format", "json"], output)
        if status != 0:
            raise LabError(f"podsim_mpirun ended with status {status}")
        return json.loads(said.read_text(encoding="utf-8"))
