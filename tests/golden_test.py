#!/usr/bin/env python3
"""The whole command line, word for word: every line of golden/commands.txt is run, and what it prints is what golden/expected/ says.

usage: golden_test.py PODSIM [--update]

Prints a unified diff of the first ten commands that differ, and exits with 1. With --update it writes golden/expected/ instead.

A line of commands.txt is a command, `cat OUT/FILE`, or a comment that begins with #. Commands are run in order, in a folder of their own: it has
the folders of the repository, and an empty OUT for what commands write and later ones read. `< FILE` at the end of a line is standard input.

golden/expected/VERB.txt has a block per command: the command, `status N` where it is not 0, standard output, and standard error in lines that
begin with `!`. A few values differ from one run or computer to the next: they are masked. Of the operations within a played call the first stands there.
"""

import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
EXPECTED = GOLDEN / "expected"
SHOWN = 10  # commands that differ

NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?"
SMALL = r"(?:\d+(?:\.\d+)?e-0[45]|0\.000\d+)"
TIME = rf"{NUMBER} (?:ps|ns|us|ms|s)"
MASKS = [
    # What was built, by what.
    (r"(podsim \d+\.\d+\.\d+ )\(commit .*\)", r"\1(<build>)"),
    # How long podsim itself took.
    (rf"(simulated in  +){TIME} \(schedule built in {TIME}\)", r"\1<time> (schedule built in <time>)"),
    (rf"(parts simulated in ){TIME}", r"\1<time>"),
    (rf'("?(?:wall|build)_s"?: ){NUMBER}', r"\1<time>"),
    # What a command that takes ten seconds tells of itself, on a slow computer only.
    (r"(?m)^podsim: (?!(?:error|note|warning): ).*, \d+ s\n", ""),
    # Errors of floating point: OpenBLAS adds up in another order on another processor. No error at all stays 0.
    (rf'("(?:max_abs|max_rel|proof_rel)_error": )(?!0\.0\b){NUMBER}', r"\1<error>"),
    (rf"(all orders bit-equal, ){NUMBER} of", r"\1<error> of"),
    (rf"(largest error on [a-z ]*  )(?!0 ){NUMBER} absolute, {NUMBER} of", r"\1<error> absolute, <error> of"),
    (rf"(largest error of (?:gradients|parameters) +)(?!0 ){NUMBER}", r"\1<error>"),
    (rf'("max_(?:gradient|parameter)_error": )(?!0\.0\b){NUMBER}', r"\1<error>"),
    # Above 1e-05, what an error may be follows from the error of a reference in float32, where no bf16 is stored. Losses agree to six digits.
    (rf'("(?:proof_)?tolerance": ){SMALL}', r"\1<bound>"),
    (rf"(\(allowed ){SMALL}", r"\1<bound>"),
    (rf'(?:"loss(?:es)?(?:_reference)?": \[?|loss of step \d+ +)\s*{NUMBER}(?:,\s*{NUMBER})*', lambda found: re.sub(r"\d+\.\d+", lambda loss: f"{float(loss[0]):.6g}", found[0])),
    # The size of a store depends on the version of SQLite.
    (rf"(store        OUT/\w+\.sqlite, ){NUMBER} \w?B", r"\1<size>"),
    (r'("store_bytes": )\d+', r"\1<size>"),
    (r"(?m)^(OUT/\w+\.sqlite,.*,)\d+$", r"\1<size>"),
]


def commands():
    lines = (GOLDEN / "commands.txt").read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line and not line.startswith("#")]
    twice = {line for line in found if found.count(line) > 1}
    if twice:
        sys.exit(f"golden_test.py: commands.txt has a command twice: {min(twice)}")
    return found


# Of the operations within a call, which repeat in thousands of lines what unit tests hold, the first.
WITHIN = re.compile(r'^( {6,})("operations": \[\n.*?^\1  \}),\n.*?^\1\]', re.MULTILINE | re.DOTALL)


def masked(text):
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return WITHIN.sub(r"\1\2\n\1]", text)


def text_of(stream):
    text = masked(stream.decode("utf-8", "backslashreplace"))
    return text if not text or text.endswith("\n") else text + "<no end of line>\n"


def block(podsim, command, folder):
    """A command and all that it says."""
    words = shlex.split(command)
    if words[0] == "cat":
        file = folder / words[1]
        return f"$ {command}\n" + (text_of(file.read_bytes()) if file.exists() else "! there is no such file\n")
    standard_input = os.devnull
    if "<" in words:
        words, standard_input = words[:-2], folder / words[-1]
    with open(standard_input, "rb") as file:
        result = subprocess.run([podsim, *words[1:]], cwd=folder, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    status = f"status {result.returncode}\n" if result.returncode else ""
    err = "".join(f"! {line}".rstrip(" ") + "\n" for line in text_of(result.stderr).split("\n")[:-1])
    return f"$ {command}\n{status}{text_of(result.stdout)}{err}"


def file_of(command, before):
    """The file of golden/expected that a command belongs to, behind one that belongs to `before`."""
    words = shlex.split(command)
    if words[0] == "cat":
        return before
    verb = words[1] if len(words) > 1 else ""
    return (verb if verb in ("run", "check", "compare", "tune", "sweep", "calibrate", "validate", "diagnose", "diff", "show") else "help") + ".txt"


def run_all(podsim):
    """The text of every file."""
    files, file = {}, "help.txt"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "OUT").mkdir()
        for entry in ROOT.iterdir():
            if entry.is_dir() and not entry.name.startswith("."):
                (folder / entry.name).symlink_to(entry)
        for command in commands():
            file = file_of(command, file)
            files.setdefault(file, []).append(block(podsim, command, folder))
    return {name: "\n".join(blocks) for name, blocks in files.items()}


def read_expected():
    return {path.name: path.read_bytes().decode() for path in EXPECTED.glob("*.txt")}


def write_expected(texts):
    EXPECTED.mkdir(exist_ok=True)
    for path in EXPECTED.glob("*.txt"):
        path.unlink()
    for name, text in texts.items():
        (EXPECTED / name).write_bytes(text.encode())


def by_command(texts):
    """Every block under its command, with the file that it is in."""
    return {block.partition("\n")[0]: (name, block) for name, text in texts.items() for block in re.split(r"\n(?=\$ )", text)}


def differences(before, now):
    """A diff of every command that does not say what it said."""
    before, now = by_command(before), by_command(now)
    for command in [*now, *(command for command in before if command not in now)]:
        name, _ = now.get(command) or before[command]
        was, is_now = (side[command][1].splitlines() if command in side else [] for side in (before, now))
        if was != is_now:
            yield "\n".join(difflib.unified_diff(was, is_now, f"tests/golden/expected/{name}", "now", lineterm="", n=5))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("podsim", metavar="PODSIM")
    parser.add_argument("--update", action="store_true", help="write golden/expected/")
    arguments = parser.parse_args()
    before, now = read_expected(), run_all(os.path.abspath(arguments.podsim))
    if arguments.update:
        write_expected(now)
        return 0
    if before == now:
        return 0
    found = list(differences(before, now))
    print(*found[:SHOWN], sep="\n\n")
    print(f"\n{len(found)} commands differ{'' if found else ', but their order does'}. If that is meant: tests/golden_test.py PODSIM --update, look at the "
          "diff, and say why in CHANGELOG.md.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
