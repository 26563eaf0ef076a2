#!/usr/bin/env python3
"""slurm_sweep.sh on a real cluster of one node: munged, slurmctld and slurmd (Debian packages slurmctld, slurmd, slurm-client, munge),
under a temporary directory, by the user who runs the test. Where they are not installed or do not start, the test is skipped (77) and says why.

usage: test_slurm.py PODSIM
"""

import contextlib
import getpass
import json
import os
import pathlib
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # CTest's SKIP_RETURN_CODE
LAUNCH = pathlib.Path(__file__).resolve().parent
SHARDS = 8
SWEEP = """format_version: 1
sweep {
  machine: "tpu_v4" slice: "32x32" fold: "off"
  set { path: "link.bandwidth" value: ["20 GB/s", "30 GB/s", "40 GB/s", "50 GB/s", "60 GB/s", "70 GB/s", "80 GB/s", "90 GB/s", "100 GB/s", "110 GB/s"] }
  gemm: ["m=65536,n=16384,k=16384", "m=32768,n=16384,k=16384", "m=16384,n=16384,k=16384", "m=8192,n=8192,k=16384"]
  algorithm: "meshslice" slice_count: [4, 8]
}
"""
QUICK = """format_version: 1
sweep { machine: "ideal" slice: "4" collective: "all-gather" axis: "row" bytes: ["16", "32", "64", "128", "256", "512"] algorithm: ["ring", "line"] }
"""
CONFIGURATION = """ClusterName=podsim
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class DoesNotStart(Exception):
    """This computer's Slurm, with the reason."""


def wait_for(condition, seconds):
    """What a condition returns once it is true; nothing after so long."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def free_ports(count):
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def output_of(*command, **how):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, **how)
    if done.returncode != 0:
        sys.exit(f"test_slurm.py: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


@contextlib.contextmanager
def cluster(folder):
    """A running cluster of this computer alone, known to the environment. Raises DoesNotStart."""
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    host = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, user=getpass.getuser(), folder=folder, ports=free_ports(2)))
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    daemons = []

    def start(*command):
        log = folder / f"{command[0]}.log"
        with log.open("wb") as output:
            daemons.append((subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL), log))

    def check(condition):
        """Waits for a condition, while all daemons live."""
        wait_for(lambda: condition() or any(daemon.poll() is not None for daemon, _ in daemons), 30)
        if not condition():
            raise DoesNotStart("\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for _, log in daemons))

    try:
        start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid",
              f"--log-file={folder}/munged.txt", f"--seed-file={folder}/munge.seed")
        check((folder / "munge.socket").exists)
        start("slurmctld", "-D")
        start("slurmd", "-D", "-N", host)
        check(lambda: subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, check=False).stdout.strip() == "idle")
        yield
    finally:
        for daemon, _ in reversed(daemons):
            daemon.terminate()
        for daemon, _ in reversed(daemons):
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def query(podsim, store, sql):
    """Rows; none where there is nothing to read yet."""
    command = [podsim, "sweep", "--store", store, "--format", "json", "--query", sql]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return json.loads(done.stdout)["rows"] if done.returncode == 0 else []


def field_of_job(job, name):
    told = dict(word.split("=", 1) for word in output_of("scontrol", "--oneliner", "show", "job", job).split() if "=" in word)
    return told[name]


def ended(job):
    """The state and the output of a job that ends."""
    if not wait_for(lambda: field_of_job(job, "JobState") in ("COMPLETED", "FAILED", "CANCELLED"), 240):
        sys.exit(f"test_slurm.py: the jobs have not ended:\n{output_of('squeue')}")
    return field_of_job(job, "JobState"), pathlib.Path(f"slurm-{job}.out").read_text()


def outputs():
    return "\n".join(f"{file}:\n{file.read_text()}" for file in pathlib.Path().glob("slurm-*.out"))


def expect_the_export_of_one_process(podsim, sweep, store):
    output_of(podsim, "sweep", sweep, "--store", "alone.sqlite")
    for format in ("csv", "json"):
        merged, alone = (output_of(podsim, "sweep", "--store", name, "--export", format) for name in (store, "alone.sqlite"))
        if merged != alone:
            sys.exit(f"test_slurm.py: {store} exports other {format} than one process:\n{outputs()}")


def stopped_on_its_way(podsim, pid_file, part):
    """Whether a shard has stored something and stands still. It is stopped while it is looked at, however fast it is."""
    if not pid_file.exists() or not (pid := pid_file.read_text()).endswith("\n"):
        return False
    os.kill(int(pid), signal.SIGSTOP)
    if any(row["points"] > 0 for row in query(podsim, part, "SELECT count(*) AS points FROM results WHERE status != 'remaining'")):
        return True
    os.kill(int(pid), signal.SIGCONT)
    return False


def test_requeued(podsim):
    """An array of 8 shards, one of them requeued while it runs, merged: the export of one process."""
    pathlib.Path("sweep.textproto").write_text(SWEEP)
    noting = pathlib.Path("noting")
    noting.write_text(f"#!/bin/sh\necho $$ > $SLURM_ARRAY_TASK_ID.pid\nexec {shlex.quote(podsim)} \"$@\"\n")
    noting.chmod(0o755)
    array, merge = output_of(LAUNCH / "slurm_sweep.sh", "sweep.textproto", "all.sqlite", str(SHARDS), env={**os.environ, "PODSIM": str(noting.resolve())}).split()
    requeued = 3
    part = f"all-{requeued}-of-{SHARDS}.sqlite"
    if not wait_for(lambda: stopped_on_its_way(podsim, pathlib.Path(f"{requeued}.pid"), part), 120):
        sys.exit(f"test_slurm.py: shard {requeued} has stored nothing; {output_of('squeue')}")
    output_of("scontrol", "requeue", f"{array}_{requeued}")  # which has it go on, and end
    if (state := ended(merge)[0]) != "COMPLETED":
        sys.exit(f"test_slurm.py: the merge is {state}:\n{outputs()}")
    if (restarts := field_of_job(f"{array}_{requeued}", "Restarts")) != "1":
        sys.exit(f"test_slurm.py: shard {requeued} was restarted {restarts} times, expected 1:\n{outputs()}")
    sessions = [row["finished"] for row in query(podsim, part, "SELECT finished FROM sessions ORDER BY started_s")]
    if len(sessions) != 2 or min(sessions) == 0 or sum(sessions) != 10:
        sys.exit(f"test_slurm.py: shard {requeued} stored {sessions} points before and after it was requeued, expected some each, of 10 points:\n{outputs()}")
    expect_the_export_of_one_process(podsim, "sweep.textproto", "all.sqlite")
    print(f"test_slurm.py: {SHARDS} shards, one requeued after {sessions[0]} of its points: the export of one process")


def test_failed(podsim):
    """A task fails: the merge names its shard and fails; run again alone, and merged again, it is the export of one process."""
    pathlib.Path("quick.textproto").write_text(QUICK)
    failing = pathlib.Path("failing").resolve()
    failing.write_text(f'#!/bin/sh\n[ "$4" != 2/3 ] || exit 1\nexec {podsim} "$@"\n')
    failing.chmod(0o755)
    _, merge = output_of(LAUNCH / "slurm_sweep.sh", "quick.textproto", "quick.sqlite", "3", env={**os.environ, "PODSIM": str(failing)}).split()
    state, told = ended(merge)
    if state != "FAILED" or "4 of 12 points remain in quick.sqlite\n  in no part: shard 2/3\n" not in told:
        sys.exit(f"test_slurm.py: a shard failed, and the merge is {state}:\n{told}")
    again = {**os.environ, "PODSIM": podsim}
    array = output_of("sbatch", "--parsable", "--array=2", LAUNCH / "shard.sbatch", "quick.textproto", "quick.sqlite", "3", env=again).strip()
    merge = output_of("sbatch", "--parsable", f"--dependency=afterok:{array}", LAUNCH / "merge.sbatch", "quick.sqlite", "3", env=again).strip()
    if (state := ended(merge)[0]) != "COMPLETED":
        sys.exit(f"test_slurm.py: the second merge is {state}:\n{outputs()}")
    os.remove("alone.sqlite")
    expect_the_export_of_one_process(podsim, "quick.textproto", "quick.sqlite")
    print("test_slurm.py: 3 shards, of which one failed and was run again: the export of one process")


def main():
    podsim = os.path.abspath(sys.argv[1])
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where users do not look for daemons
    for program in ("munged", "slurmctld", "slurmd", "sbatch"):
        if shutil.which(program) is None:
            print(f"test_slurm.py: skipped: there is no {program} (Debian packages slurmctld, slurmd, slurm-client and munge); slurm_sweep.sh was not tested")
            return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            work = folder / "a study"  # names may hold spaces
            work.mkdir()
            os.chdir(work)
            with cluster(folder):
                test_requeued(podsim)
                test_failed(podsim)
            return 0
        except DoesNotStart as reason:
            print(f"test_slurm.py: skipped: Slurm does not start here; slurm_sweep.sh was not tested\n{reason}")
            return SKIPPED
        finally:
            os.chdir("/")


if __name__ == "__main__":
    sys.exit(main())
