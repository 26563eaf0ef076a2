#!/usr/bin/env python3
"""`pip wheel .` by scikit-build-core, where that is installed: the wheel holds the module and nothing else. Debian 12 does not have it: the test then says so.

usage: wheel_test.py SOURCE SCRATCH
"""

import pathlib
import shutil
import subprocess
import sys
import zipfile

SKIPPED = 77  # CTest's SKIP_RETURN_CODE


def main():
    source, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    try:
        import pip  # noqa: F401
        import pybind11  # noqa: F401
        import scikit_build_core  # noqa: F401
    except ImportError as missing:
        print(f"wheel_test.py: skipped: {sys.executable} has no {missing.name}; pyproject.toml was not tested")
        return SKIPPED
    shutil.rmtree(scratch, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", scratch, source], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"wheel_test.py: pip wheel ended with {done.returncode}:\n{done.stdout}")
    (wheel,) = scratch.glob("podsim-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    others = [name for name in names if not name.startswith(("podsim/", "podsim-"))]
    if others or "podsim/__init__.py" not in names or not any(name.startswith("podsim/_core") for name in names):
        sys.exit(f"wheel_test.py: expected the package podsim alone, found {names}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
