"""Labs in the kernel: what makes them, lists them and removes them."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import batches
from network import LabError

STATE = pathlib.Path("/run/podsim-lab")
NAMES = pathlib.Path("/run/netns")  # where ip keeps the names of namespaces
HOW_MANY_AT_ONCE = 4  # namespaces; most of their time is the kernel's


def ask(*words, text=None):
    """Runs a program, which ends with this one: what was killed adds nothing to a lab. Errors: LabError with what it said."""
    done = subprocess.run(["setpriv", "--pdeathsig", "KILL", *words], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip() or f'status {done.returncode}'}")
    return done.stdout


def batch(program, lines, inside=None):
    if lines:
        ask(program, *([] if inside is None else ["-n", inside]), "-batch", "-", text="\n".join(lines) + "\n")


def require_root():
    if os.name != "posix" or not pathlib.Path("/proc/self/ns/net").exists():
        raise LabError("a lab needs Linux with network namespaces")
    if os.geteuid() != 0:
        raise LabError("a lab needs root, for network namespaces")
    for program, package in (("ip", "iproute2"), ("tc", "iproute2"), ("setpriv", "util-linux"), ("unshare", "util-linux")):
        if shutil.which(program) is None:
            raise LabError(f"a lab needs {program}, Debian's package {package}")


def require_kernel(lab):
    """Errors: why no lab can be made here. Nothing stays of the attempt."""
    require_root()
    probe = batches.namespace(lab, batches.PROBE)
    try:
        ask("ip", "netns", "add", probe)
    except LabError as error:
        raise LabError(f"this kernel or container gives no network namespaces: {error}") from error
    try:
        ask("ip", "-n", probe, "link", "add", "name", "cable0", "type", "veth", "peer", "name", "cable1")
        ask("ip", "-n", probe, "link", "add", "name", "bridge", "type", "bridge")
        ask("tc", "-n", probe, "qdisc", "add", "dev", "cable0", "root", "tbf", "rate", "8mbit", "burst", "3028", "limit", "65536")
    except LabError as error:
        raise LabError(f"this kernel lacks what a lab is made of (veth, bridge, tbf): {error}") from error
    finally:
        ask("ip", "netns", "del", probe)


def require_name(lab):
    if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", lab):
        raise LabError(f"expected a name of up to 16 small letters and digits, found {lab!r}")


def state_of(lab):
    return STATE / lab


def namespaces_of(lab):
    """Those that exist, whoever was cut off while making or removing them."""
    names = sorted(file.name for file in NAMES.iterdir()) if NAMES.exists() else []
    return [name for name in names if re.fullmatch(rf"{re.escape(lab)}-(?:{batches.HEAD}|{batches.PROBE}|\d+)", name)]


def is_there(lab):
    return state_of(lab).exists() or bool(namespaces_of(lab))


def stored_routes(lab):
    file = state_of(lab) / "routes.json"
    if not file.exists():
        raise LabError(f"no lab {lab} is up: `lab up`")
    return file.read_text(encoding="utf-8")


def settle(lab, network, which):
    """Everything inside one namespace."""
    name = batches.namespace(lab, which)
    settings = "; ".join(f"[ ! -e /proc/sys/{key} ] || echo '{value}' > /proc/sys/{key}" for key, value in batches.SETTINGS.items())
    ask("ip", "netns", "exec", name, "sh", "-ec", settings)
    if which == batches.HEAD:
        batch("ip", batches.head(network), name)
        return
    batch("ip", batches.node(network, which), name)
    batch("tc", batches.shaping(network, which), name)


def up(lab, network, routes_text):
    """Makes a lab. What it had made when something failed is removed again."""
    require_name(lab)
    require_root()
    if is_there(lab):
        raise LabError(f"a lab {lab} is there already: `lab --name {lab} down`")
    require_kernel(lab)
    state_of(lab).mkdir(parents=True)
    try:
        batch("ip", batches.whole(lab, network))
        with concurrent.futures.ThreadPoolExecutor(HOW_MANY_AT_ONCE) as pool:
            list(pool.map(lambda which: settle(lab, network, which), [batches.HEAD, *range(network.nodes)]))
        # Last: a lab with this file is complete.
        (state_of(lab) / "routes.json").write_text(routes_text, encoding="utf-8")
    except BaseException:
        down(lab)
        raise


def processes_in(lab):
    """Those whose network is one of the lab's."""
    found = []
    for name in namespaces_of(lab):
        try:
            found += [int(pid) for pid in ask("ip", "netns", "pids", name).split()]
        except LabError:  # named, but not made: who made it was killed
            pass
    return found


def end_processes(lab):
    for signal_of_round in (signal.SIGTERM, *[signal.SIGKILL] * 50):
        left = processes_in(lab)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal_of_round)
            except ProcessLookupError:
                pass
        time.sleep(0.1)


def down(lab):
    """Removes a lab, complete or not, with the processes inside it; returns how many namespaces there were. With a namespace go its interfaces."""
    require_name(lab)
    require_root()
    names = namespaces_of(lab)
    end_processes(lab)
    if names:
        try:
            ask("ip", "-force", "-batch", "-", text="".join(f"netns del {name}\n" for name in names))
        except LabError:
            pass  # of a namespace that is only a name: below
    for name in namespaces_of(lab):
        (NAMES / name).unlink()
    shutil.rmtree(state_of(lab), ignore_errors=True)
    return len(names)
