#!/usr/bin/env python3
"""Programs and libraries below a folder load nothing from the current folder: where an ELF file says where its libraries are (RPATH, RUNPATH), every element
is absolute or begins with $ORIGIN, and none is empty, which glibc takes for the current folder. Names of needed libraries are no relative paths.

usage: library_paths_test.py FOLDER
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Lines of `readelf --dynamic`: "... (RUNPATH)            Library runpath: [$ORIGIN/lib:]", "... (NEEDED)             Shared library: [libm.so.6]"
PATHS = re.compile(r"\((?:RPATH|RUNPATH)\).*?\[(.*)\]")
NEEDED = re.compile(r"\(NEEDED\).*?\[(.*)\]")


def dynamic_section(file):
    return subprocess.run(["readelf", "--dynamic", "--wide", file], stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"}, check=True).stdout


def faults_of(dynamic):
    """What is wrong in an output of readelf."""
    faults = []
    for paths in PATHS.findall(dynamic):
        faults += [f"loads libraries from {element or 'the current folder (empty element)'} in [{paths}]" for element in paths.split(":")
                   if not (element.startswith("/") or element == "$ORIGIN" or element.startswith("$ORIGIN/"))]
    return faults + [f"needs {name}, a relative path" for name in NEEDED.findall(dynamic) if "/" in name and not name.startswith("/")]


def elf_files(folder):
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and file.suffix not in (".o", ".a"):
            with open(file, "rb") as contents:
                if contents.read(4) == b"\x7fELF":
                    yield file


def finds_faults():
    """That a library with such a path is found: one that is linked with it."""
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/library.so"
        for paths, fault in (("$ORIGIN/lib:", True), (":/usr/lib", True), ("lib", True), ("$ORIGINAL/lib", True), ("$ORIGIN", False), ("$ORIGIN/../lib:/opt/lib", False)):
            subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-rpath,{paths}", "-o", library, "-x", "c", os.devnull], check=True)
            if bool(faults_of(dynamic_section(library))) != fault:
                sys.exit(f"library_paths_test.py: the path {paths!r} is {'not ' if fault else ''}a fault")


def main():
    finds_faults()
    files = list(elf_files(pathlib.Path(sys.argv[1])))
    if not files:
        sys.exit(f"library_paths_test.py: no programs or libraries in {sys.argv[1]}")
    faults = [f"{file}: {fault}" for file in files for fault in faults_of(dynamic_section(file))]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
