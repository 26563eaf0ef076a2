"""podsim_mpirun on a lab, by Open MPI: mpirun in the head's namespace, a rank in each chip's."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import batches
import kernel
from network import CABLE_NETWORK, MANAGEMENT_NETWORK, LabError, management_address

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EAGER_BYTES = 1 << 20
# How long a rank that waits sleeps: a hundredth of a message of 128 KiB, and it takes no core from the network stacks.
BETWEEN_LOOKS = "200us"
# Ranks come before everything else on this computer's cores when they wake up: README.md says what that is worth. All of Open MPI does, as a rank that waits in
# MPI_Init looks all the time and would keep its daemons from a core.
FIRST = ["chrt", "--fifo", "1"]


def chips_named(text, network):
    """'0,1,4-7'; None: all."""
    if text is None:
        return list(range(network.chips))
    chips = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part, re.ASCII)
        if not found:
            raise LabError(f"--chips: expected numbers of chips, as 0,1,4-7, found {text!r}")
        chips += range(int(found[1]), int(found[2] or found[1]) + 1)
    if not chips or max(chips) >= network.chips or len(set(chips)) != len(chips):
        raise LabError(f"--chips: expected different chips below {network.chips}, found {text!r}")
    return chips


def program(name):
    """A program of this repository: where the environment says (PODSIM, PODSIM_MPIRUN), or in build/."""
    found = os.environ.get(name.upper(), str(ROOT / "build" / name))
    if not os.access(found, os.X_OK):
        raise LabError(f"expected {found}: build it (podsim_mpirun: where Open MPI is installed, libopenmpi-dev openmpi-bin), or name it by {name.upper()}")
    return os.path.abspath(found)


def priority(arguments):
    """FIRST; nothing where this computer gives no such priority, or where ranks look all the time and would leave no core to others."""
    if "--between-looks" in arguments and re.match(r"0+(\.0*)?[a-z]", arguments[arguments.index("--between-looks") + 1]):
        return []
    return FIRST if shutil.which(FIRST[0]) and subprocess.run([*FIRST, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0 else []


def words(lab, chips, session, what):
    """The command line. Messages go over the cables, everything that starts and watches ranks over the management network."""
    settings = {
        "plm_rsh_agent": str(HERE / "agent"),
        "plm_rsh_no_tree_spawn": "1",
        "plm_rsh_num_concurrent": "16",
        "oob_tcp_if_include": MANAGEMENT_NETWORK,
        "pml": "ob1",
        "btl": "tcp,self",
        "btl_tcp_if_include": CABLE_NETWORK,
        # Messages of up to 1 MiB leave at once, larger ones after a handshake by which the sender sends on. README.md: otherwise the receiver asks for the
        # rest, and its request waits behind what it sends itself.
        "btl_tcp_eager_limit": str(EAGER_BYTES),
        "btl_tcp_rndv_eager_limit": str(EAGER_BYTES),
        "btl_tcp_max_send_size": str(EAGER_BYTES),
        "btl_tcp_flags": "send",
        "mpi_yield_when_idle": "1",  # all ranks share this computer's cores
        "orte_tmpdir_base": session,
        "odls_base_sigkill_timeout": "0",
    }
    command = ["setpriv", "--pdeathsig", "TERM", "--", *priority(what), "ip", "netns", "exec", batches.namespace(lab, batches.HEAD)]
    command += ["mpirun", "--allow-run-as-root", "--bind-to", "none", "--map-by", "node", "-n", str(len(chips)), "--host", ",".join(management_address(chip) for chip in chips)]
    for name, value in settings.items():
        command += ["--mca", name, value]
    return command + what


def run(lab, chips, arguments, output=None):
    """Returns the exit status. A cut-off run leaves nothing behind either: mpirun is ended with this process, and the ranks with mpirun; what escapes that
    ends by `lab down`."""
    kernel.require_root()
    if shutil.which("mpirun") is None:
        raise LabError("a lab's ranks need mpirun, Debian's package openmpi-bin")
    with tempfile.TemporaryDirectory(prefix="run-", dir=kernel.state_of(lab)) as session:
        looks = [] if "--between-looks" in arguments else ["--between-looks", BETWEEN_LOOKS]
        environment = {**os.environ, "PODSIM_LAB": lab, "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run(words(lab, chips, session, [program("podsim_mpirun"), *looks, *arguments]), env=environment, stdin=subprocess.DEVNULL, stdout=output, check=False).returncode
