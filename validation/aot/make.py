#!/usr/bin/env python3
"""Compiles the programs of programs/ for TPUs and GPUs that are not there and stores what the compilers say: modules/NAME.hlo.gz and NAME.json.

    make.py [--only NAME[,NAME...]] [--jobs N] [--out DIR]   what is missing in DIR (modules/ beside this file if left out), a process each
    make.py --check --only NAME[,NAME...] [--keep DIR]       compiles these anew (into DIR) and says which differ from what is stored
    make.py --list                                           the rows: name, program, slice, mesh
    make.py --readme                                         writes the table of README.md from the JSON files

Needs the environment that tests/jax_env.sh makes; programs of MaxText another one, whose Python PODSIM_MAXTEXT names (README.md), and are left out without
it. Ends with 1 if a program was not compiled or differs.
"""

import argparse
import concurrent.futures
import gzip
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from table import ROWS

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 240  # seconds of the processor for a program; the clock may show four times as many
MACHINES = {"v4": "tpu_v4", "v5e": "tpu_v5e", "v5p": "tpu_v5p", "v6e": "tpu_v6e", "tpu7x": "tpu7x", "h100": "dgx_h100", "b200": "dgx_b200"}
GPUS = ("h100", "b200")
# Programs that need more than the pinned packages: the variable that names the Python which has it.
PYTHON_OF = {"maxtext_step": "PODSIM_MAXTEXT"}


def loaded_devices():
    """podsim.jax's own file of absent devices, by its path: the Python of some programs cannot load podsim."""
    spec = importlib.util.spec_from_file_location("podsim_jax_devices", HERE.parents[1] / "tools" / "python" / "podsim" / "jax" / "_devices.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


ABSENT = loaded_devices()
ENVIRONMENT = {"JAX_PLATFORMS": "cpu", **ABSENT.ENVIRONMENT}


def devices_of(generation, extents, slices):
    """The devices of a slice as the compiler's description of it lists them. GPUs: extents are the hosts and the GPUs of each."""
    return ABSENT.devices_of(MACHINES[generation], extents, slices)


def mesh_of(row, devices):
    """order: jax, as JAX lays it on TPUs; ids, in the order of the devices' numbers."""
    if row["order"] == "jax":
        return ABSENT.mesh_of(devices, row["axes"], row["slices"])
    import numpy as np
    from jax.sharding import Mesh
    return Mesh(np.array(sorted(devices, key=lambda device: device.id)).reshape(list(row["axes"].values())), tuple(row["axes"]))


def compile_here(row, out):
    """In a process of its own: one module and its JSON into the folder out."""
    sys.path.insert(0, str(HERE / "programs"))
    import resource
    import jax
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    # Names of files as they are in the tree, wherever it lies.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r"^.*/(?:aot|site-packages)/")
    generation, extents = row["slice"].split(":")
    devices = devices_of(generation, [int(extent) for extent in extents.split("x")], row["slices"])
    mesh = mesh_of(row, devices)
    file, function = row["program"].split(":")
    begin = time.time()
    program, arguments = getattr(importlib.import_module(file), function)(mesh, **row["arguments"])
    lowered = program.lower(*arguments)
    lowered_at = time.time()
    compiled = lowered.compile(compiler_options=row["options"])
    seconds = time.time() - lowered_at
    text = compiled.as_text()
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}
    cost = cost[0] if isinstance(cost, list) else cost
    flat = list(mesh.devices.flat)
    tpu = generation not in GPUS
    partitions = re.search(r"num_partitions=(\d+)", text.split("\n", 1)[0])
    what = {"name": row["name"], "why": row["why"], "slice": row["slice"], "slices": row["slices"], "order": row["order"],
            "machine": MACHINES[generation], "axes": row["axes"], "devices": [device.id for device in flat]}
    if tpu:
        what |= {"coords": [list(device.coords) for device in flat], "cores": [device.core_on_chip for device in flat],
                 "slice_index": [getattr(device, "slice_index", 0) for device in flat]}
    what |= {"kind": devices[0].device_kind, "compiler_options": row["options"], "lower_s": round(lowered_at - begin, 2), "compile_s": round(seconds, 2),
             "bytes": len(text), "memory": {name: getattr(memory, name) for name in sorted(dir(memory)) if name.endswith("_in_bytes")},
             "cost": {name: cost[name] for name in ("flops", "transcendentals", "optimal_seconds", "bytes accessed") if name in cost},
             "partitions": int(partitions[1]) if partitions else 1}
    # The JSON last: where it is, the text is whole.
    (out / f"{row['name']}.hlo.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (out / f"{row['name']}.json").write_text(json.dumps(what, separators=(",", ":")) + "\n")


def python_of(row):
    """The Python that compiles the row; None where it is not told."""
    variable = PYTHON_OF.get(row["program"].split(":")[0])
    return os.environ.get(variable) if variable else sys.executable


def with_python(rows):
    """The rows that can be compiled; says which cannot."""
    for row in rows:
        if not python_of(row):
            print(row["name"], "left out: no", PYTHON_OF[row["program"].split(":")[0]], flush=True)
    return [row for row in rows if python_of(row)]


def compile_apart(row, out):
    """None, or why there is no module."""
    command = [python_of(row), str(HERE / "make.py"), "--here", "--only", row["name"], "--out", str(out)]
    try:
        done = subprocess.run(command, env=os.environ | ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=4 * LIMIT, cwd=HERE)
    except subprocess.TimeoutExpired:
        return f"not compiled in {4 * LIMIT} s"
    if done.returncode == 0:
        return None
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"not compiled in {LIMIT} s of the processor"
    lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"ended with {done.returncode}"]
    said = [line for line in lines if re.match(r"[\w.]*(Error|Exception|INTERNAL|INVALID)", line)]
    return (said or lines)[-1][:400]


def compile_all(rows, out, jobs):
    """The names that were not compiled."""
    failed = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = {pool.submit(compile_apart, row, out): row["name"] for row in rows}
        for task in concurrent.futures.as_completed(tasks):
            name, why = tasks[task], task.result()
            print(name, "FAILED: " + why if why else "compiled", flush=True)
            if why:
                failed.append(name)
    return failed


def text_of(folder, name):
    """Without the tables of source lines: those of this file change with it."""
    text = gzip.decompress((folder / f"{name}.hlo.gz").read_bytes()).decode()
    return re.sub(r"\n\nFileNames\n.*?\n\n\n", "\n\n", text, count=1, flags=re.DOTALL)


def write_readme(folder):
    lines = ["| module | machine | slice | mesh | what | kB | s |", "|---|---|---|---|---|---|---|"]
    for row in ROWS:
        path = folder / f"{row['name']}.json"
        if not path.exists():
            continue
        of = json.loads(path.read_text())
        where = of["slice"].split(":")[1] if of["slices"] == 1 else f"{of['slices']} x {of['slice'].split(':')[1]}"
        mesh = ",".join(f"{axis}={size}" for axis, size in of["axes"].items())
        lines.append(f"| {of['name']} | {of['machine']} | {where} | {mesh} | {of['why']} | {of['bytes'] / 1000:.0f} | {of['compile_s']:.0f} |")
    readme = HERE / "README.md"
    before, rest = readme.read_text().split("<!-- modules -->\n")
    after = rest.split("<!-- end -->")[1]
    readme.write_text(before + "<!-- modules -->\n" + "\n".join(lines) + "\n<!-- end -->" + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names, with commas")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "modules")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="with --check: the folder that the new modules stay in")
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    rows = ROWS
    if given.only:
        by_name = {row["name"]: row for row in ROWS}
        unknown = [name for name in given.only.split(",") if name not in by_name]
        if unknown:
            sys.exit(f"make.py: expected names of --list, found {', '.join(unknown)}")
        rows = [by_name[name] for name in given.only.split(",")]
    out = given.out.resolve()
    if given.list:
        for row in rows:
            print(row["name"], row["program"], row["slice"], ",".join(f"{axis}={size}" for axis, size in row["axes"].items()))
    elif given.readme:
        write_readme(out)
    elif given.here:
        compile_here(rows[0], out)
    elif given.check:
        rows = with_python(rows)
        with tempfile.TemporaryDirectory() as folder:
            anew = given.keep.resolve() if given.keep else pathlib.Path(folder)
            failed = compile_all(rows, anew, given.jobs)
            differ = [row["name"] for row in rows if row["name"] not in failed and text_of(anew, row["name"]) != text_of(out, row["name"])]
        for name in differ:
            print(name, "DIFFERS from", f"{out.name}/{name}.hlo.gz")
        sys.exit(1 if failed or differ else 0)
    else:
        out.mkdir(parents=True, exist_ok=True)
        sys.exit(1 if compile_all(with_python([row for row in rows if not (out / f"{row['name']}.json").exists()]), out, given.jobs) else 0)


if __name__ == "__main__":
    main()
