#!/usr/bin/env python3
"""Compiles files one by one, without making objects: finds includes that are missing, which builds of several files as one hide.

usage: check_each_file.py [--build DIR] [--root DIR] [--since COMMIT | --all]     exit status 0: all compile, 1: some do not, 2: cannot be told

By default the files that changed since the commit before the last, and of the others one in 56: those that are due on the day of the last
commit. So eight weeks of commits look at every file, and the same commit always at the same ones. A header is included by an empty file, unless its source
x.cpp is compiled and includes x.hpp first, which is the same; nothing is compiled with precompiled headers. DIR (build/developer) is a configured
build folder of the preset `developer` with its generated sources.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import re
import shlex
import subprocess
import sys
import zlib

DAYS = 56
FIRST_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)', re.MULTILINE)
COMPILER = re.compile(r"(^|[/-])(c|g|clang)\+\+[^/]*$")


def git(root, *arguments):
    """Output of a git command; None where it fails."""
    done = subprocess.run(["git", "-C", root, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def due_day(path):
    """The same for x.hpp and x.cpp."""
    return zlib.crc32(os.path.splitext(path)[0].encode()) % DAYS


def is_first_in_source(root, header):
    """Whether x.cpp includes this x.hpp before anything else, and so compiles it for itself."""
    try:
        with open(os.path.join(root, os.path.splitext(header)[0] + ".cpp"), encoding="utf-8") as file:
            first = FIRST_INCLUDE.search(file.read())
    except FileNotFoundError:
        return False
    return first is not None and first.group(1) == header


def chosen(root, files, since):
    """Of `files` (paths below the root) the changed ones, and those of the day."""
    changed = git(root, "diff", "--name-only", since)
    day = git(root, "log", "-1", "--format=%ct")
    changed = set(changed.splitlines()) if changed is not None else set()  # a clone without history: nothing is known of changes
    due = datetime.datetime.fromtimestamp(int(day), datetime.timezone.utc).toordinal() % DAYS if day else 0
    return [file for file in files if file in changed or due_day(file) == due]


def plain_flags(command):
    """The compiler and its flags, without the cache before it, precompiled headers, source and object."""
    words = shlex.split(command)
    while words and not COMPILER.search(words[0]):
        words.pop(0)
    flags, index = [], 0
    while index < len(words):
        if words[index] == "-include" and "cmake_pch" in words[index + 1] or words[index] in ("-o", "-c"):
            index += 2
            continue
        if words[index] not in ("-Winvalid-pch", "-fpch-preprocess"):
            flags.append(words[index])
        index += 1
    return flags


def work_of(root, build):
    """{path: (folder to compile in, flags)} of every source of ours, and of every header by the flags of a source of its folder or the next above."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    work, folders = {}, {}
    for entry in commands:
        path = os.path.relpath(entry["file"], root)
        if path.startswith("..") or os.path.abspath(entry["file"]).startswith(os.path.abspath(build) + os.sep):
            continue
        work[path] = (entry["directory"], plain_flags(entry["command"]))
        if path.endswith("_test.cpp") or os.path.dirname(path) not in folders:
            folders[os.path.dirname(path)] = work[path]  # tests see what headers of tests include
    for header in (git(root, "ls-files", "*.hpp") or "").splitlines():
        folder = os.path.dirname(header)
        while folder and folder not in folders:
            folder = os.path.dirname(folder)
        if folder in folders:
            work[header] = folders[folder]
    return work


def compile_one(path, folder, flags):
    text = f'#include "{path}"\n'  # as a header has it; a source is no different
    done = subprocess.run([*flags, "-fsyntax-only", "-x", "c++", "-"], cwd=folder, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return done.returncode == 0, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    parser.add_argument("--build", help="configured build folder (ROOT/build/developer)")
    parser.add_argument("--since", default="HEAD^", help="files that differ from this commit count as changed (HEAD^)")
    parser.add_argument("--all", action="store_true", help="every file")
    arguments = parser.parse_args()
    root = os.path.abspath(arguments.root)
    build = arguments.build or os.path.join(root, "build", "developer")
    try:
        work = work_of(root, build)
    except (OSError, ValueError) as error:
        print(f"check_each_file: error: {error}; configure with cmake --preset developer first", file=sys.stderr)
        return 2
    files = sorted(work) if arguments.all else chosen(root, sorted(work), arguments.since)
    chosen_files = set(files)
    files = [file for file in files if not (file.endswith(".hpp") and file[:-4] + ".cpp" in chosen_files and is_first_in_source(root, file))]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (ok, output) in zip(files, pool.map(lambda path: compile_one(path, *work[path]), files)):
            if not ok:
                failed += 1
                print(f"{path} does not compile for itself:\n{output}")
    print(f"check_each_file: {len(files)} of {len(work)} files compiled for themselves, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
