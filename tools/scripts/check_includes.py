#!/usr/bin/env python3
"""Checks that includes follow the layers of the code base.

usage: check_includes.py [--root DIR]      exit status 0: all follow, 1: violations, printed as FILE:LINE:COLUMN: message

A folder may include itself and the folders its arrows lead to, directly or through others; some outside libraries belong to one place.
The build cannot see either: every folder shares one include path.
"""

import argparse
import os
import re
import sys

TEST_FILE = re.compile(r"_test\.cpp$|/(test_[^/]*|[^/]*_test|testing)\.hpp$")  # as cmake/podsim_targets.cmake has it

# "x": {"y"} means: x may include y, and whatever y may include. Numeric, des, simgrid and mpi do not know each other, but for the numbers that mpi's ranks
# compute with.
ARROWS = {
    "sim/base": set(),
    "sim/mesh": {"sim/base"},
    "sim/topology": {"sim/mesh"},
    "sim/schedule": {"sim/mesh"},
    "sim/machine": {"sim/schedule", "sim/topology"},
    "sim/model": {"sim/machine"},
    "sim/engine": {"sim/model"},
    "sim/engine/numeric": {"sim/engine"},
    "sim/engine/max_plus": {"sim/engine"},
    "sim/engine/des": {"sim/engine/max_plus"},
    "sim/engine/simgrid": {"sim/engine"},
    "sim/engine/mpi": {"sim/engine/numeric"},
    "sim/engine/table": {"sim/engine/numeric", "sim/engine/des", "sim/engine/simgrid"},
    "sim/analysis": {"sim/engine"},
    "sim/config": {"sim/analysis"},
    "topologies/jax": {"sim/base"},
    "topologies": {"topologies/jax", "sim/config"},
    "algorithms": {"sim/schedule"},
    "workloads": {"algorithms", "topologies"},
    "workloads/sharded": {"algorithms"},
    "workloads/tuning": {"workloads", "sim/engine/table"},
    "workloads/msccl": {"algorithms", "sim/config"},
    "workloads/chakra": {"algorithms", "sim/engine"},
    "workloads/scenario": {"workloads/tuning", "workloads/sharded", "workloads/training", "workloads/hlo", "workloads/hlo_values", "workloads/msccl", "workloads/chakra"},
    "workloads/ledger": {"workloads/scenario"},
    "workloads/advice": {"workloads/scenario"},
    "workloads/differences": {"workloads/scenario"},
    "workloads/training": {"workloads"},
    "workloads/hlo": {"workloads"},
    "workloads/hlo_values": {"workloads/hlo", "sim/engine/numeric"},
    "validation/calibration": {"workloads/scenario"},
    "validation": {"validation/calibration"},
    "tools/report": {"validation", "workloads/training", "workloads/ledger", "workloads/advice", "workloads/differences"},
    "tools/page": {"tools/report"},
    "tools/sweep": {"tools/report"},
    "tools": {"tools/page", "tools/sweep", "sim/engine/mpi"},
}

PROTOBUF_FOLDERS = ("sim/config", "workloads", "validation/calibration/importers", "validation/validate", "tools/page", "tools/sweep")

# (what is included, the only folders that may, what to call it)
OUTSIDE = [
    (re.compile(r"simgrid/|xbt/"), ("sim/engine/simgrid",), "SimGrid"),
    (re.compile(r"boost/graph/"), ("sim/topology", "sim/engine/max_plus", "workloads/sharded"), "Boost.Graph"),
    (re.compile(r"boost/math/"), ("sim/base",), "Boost.Math"),
    (re.compile(r"boost/program_options"), ("tools/command",), "Boost.Program_options"),
    (re.compile(r"mpi\.h$"), ("sim/engine/mpi", "tools/mpirun"), "MPI"),
    (re.compile(r"google/protobuf/|.*\.pb\.h$"), PROTOBUF_FOLDERS, "Protobuf"),
    (re.compile(r"simdjson\.h$"), ("validation/calibration/importers", "tools/page", "tools/report", "workloads/hlo", "workloads/chakra"), "simdjson"),
    (re.compile(r"yaml-cpp/"), ("workloads/training",), "yaml-cpp"),
    (re.compile(r"pugixml\.hpp$"), ("sim/config/xml_elements.hpp", "workloads/msccl"), "pugixml"),
    (re.compile(r"cairo\.h$"), ("tools/report",), "cairo"),
    (re.compile(r"nlohmann/"), ("tools/report/json.cpp",), "nlohmann/json"),  # report/json.hpp stands for it; tests read what was written
    (re.compile(r"Eigen/"), ("validation/calibration", "validation/validate", "algorithms/collectives"), "Eigen"),
    (re.compile(r"sqlite3(ext)?\.h$"), ("sim/config/database.cpp",), "SQLite"),
    (re.compile(r"(cblas|lapacke|fftw3)\.h$"), ("sim/engine/numeric",), "the linear algebra library"),
]
IN_TESTS = {"nlohmann/json"}  # of these, what any test may include

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def closure(folder):
    """The folder and all that its arrows lead to."""
    reached = {folder}
    for next_folder in ARROWS[folder]:
        reached |= closure(next_folder)
    return reached


ALLOWED = {folder: closure(folder) for folder in ARROWS}


def folder_of(path):
    """The innermost folder of the layout that a path belongs to; None outside the layout."""
    return max((folder for folder in ARROWS if path.startswith(folder + "/")), key=len, default=None)


def within(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def without_comments(text):
    """The text with comments blanked out, so that lines and columns stay."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.DOTALL)


def violation_of(path, bracket, included, root):
    """What is wrong with one include of the file `path`, or None."""
    folder = folder_of(path)
    target = folder_of(included)
    for pattern, owners, name in OUTSIDE:
        if pattern.match(included) and not within(path, owners) and not (name in IN_TESTS and TEST_FILE.search(path)):
            return f"{name} may be included only in {', '.join(owners)}, not in {folder}"
    if bracket == "<":
        return f'headers of this repository are included with quotes: "{included}"' if target else None
    if target is None:
        return f'"{included}" is not a path from the root of the repository; outside headers are included with <>'
    if not included.endswith(".pb.h") and not os.path.isfile(os.path.join(root, included)):
        return f'there is no file "{included}"'
    # A test may look at its code from anywhere: an algorithm's test runs it on engines. So may what tests share (not installed).
    if TEST_FILE.search(path) or target in ALLOWED[folder]:
        return None
    others = sorted(ALLOWED[folder] - {folder})
    return f"{folder} may include only itself{' and ' + ', '.join(others) if others else ''}, not {target}"


def sources(root):
    """Paths of the C++ files of the layout, relative to the root, in a fixed order."""
    for folder in ARROWS:
        for directory, subdirectories, files in os.walk(os.path.join(root, folder)):
            subdirectories.sort()
            for name in sorted(files):
                path = os.path.relpath(os.path.join(directory, name), root).replace(os.sep, "/")
                if name.endswith((".cpp", ".hpp", ".h", ".cc")) and folder_of(path) == folder:
                    yield path


def check(root):
    """All violations as text, and how many files and includes were looked at."""
    violations, files, includes = [], 0, 0
    for path in sources(root):
        files += 1
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = file.read()
        # Only a line that still is an include without its comments counts; the path is read from the original, where // may be part of it.
        for number, (line, bare) in enumerate(zip(lines.split("\n"), without_comments(lines).split("\n")), start=1):
            match = INCLUDE.match(line)
            if not match or not re.match(r"\s*#\s*include", bare):
                continue
            includes += 1
            problem = violation_of(path, match.group(1), match.group(2), root)
            if problem:
                violations.append(f"{path}:{number}:{match.start(2)}: {problem}")
    return violations, files, includes


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Checks that includes follow the layers of the code base.", allow_abbrev=False)
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)), help="root of the repository (default: the one of this script)")
    root = parser.parse_args().root
    if not os.path.isdir(os.path.join(root, "sim/base")):
        print(f"check_includes: error: {root} has no folder sim/base, so it is not the root of the repository", file=sys.stderr)
        return 2
    violations, files, includes = check(root)
    for violation in violations:
        print(violation)
    print(f"check_includes: {includes} includes in {files} files, {len(violations)} against the layers")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
