#!/usr/bin/env python3
"""Compiles some of the programs anew: the text is the stored one, and podsim reads it.

usage: live_test.py PODSIM [--python PYTHON]

PYTHON has the packages of tests/jax_requirements.txt (tests/jax_env.sh makes it); left out, the environment variable PODSIM_JAX names it. Without
one, or where it compiles none of the programs (a processor or memory that the compilers do not take), the test is skipped: it ends with 77.
"""

import argparse
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# A few seconds each: permutes, gathers, an update in the host's memory, a GPU.
PROGRAMS = ["permutes_v5e", "permutes_v4", "product_no_window_v5e", "host_update_v5e", "collectives_h100"]
SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("podsim")
    parser.add_argument("--python", default=os.environ.get("PODSIM_JAX"))
    given = parser.parse_args()
    if not given.python:
        print("skipped: no Python with JAX, neither --python nor PODSIM_JAX")
        sys.exit(SKIPPED)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        anew = pathlib.Path(folder)
        made = subprocess.run([given.python, str(HERE / "make.py"), "--check", "--only", ",".join(PROGRAMS), "--out", str(HERE / "modules"),
                               "--keep", str(anew)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(made.stdout, end="")
        if not any((anew / f"{name}.hlo.gz").exists() for name in PROGRAMS):
            print("skipped: JAX compiled none of the programs here")
            sys.exit(SKIPPED)
        failures += made.returncode != 0
        for name in PROGRAMS:
            module = anew / f"{name}.hlo.gz"
            if not module.exists():
                continue
            text = anew / f"{name}.hlo"
            text.write_bytes(gzip.decompress(module.read_bytes()))
            shown = subprocess.run([given.podsim, "show", "hlo", str(text)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if shown.returncode != 0:
                print(f"{name}: show hlo ended with {shown.returncode}: {shown.stdout.strip()}")
                failures += 1
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
