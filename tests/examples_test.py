#!/usr/bin/env python3
"""What pages print is what the command prints.

usage: examples_test.py [--update] ROOT PODSIM

--update writes what the commands print now into the pages: what is wholly shown anew as a whole; where lines are left out, as many lines as were shown, those most
like them. Read the difference: sentences around examples state figures too.

In every *.md file of the tree, a block (indented by four spaces) that begins with `podsim ` and has lines that are no commands shows output: its commands are run in
order, in a folder of their own per page in which the repository's folders can be seen, and the lines behind each, if any, are held against its output.

  podsim VERB ... \\      a command; `  # ...` behind it is a comment
         OPTION ...
                         a blank line between command and output does not count
  some output
  ...                    any number of lines that are left out
  begin of a line ...    the rest of the line is left out
"""

import concurrent.futures
import dataclasses
import difflib
import functools
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = PODSIM = pathlib.Path()
NEVER_WITHOUT = ("README.md", "docs/tutorial.md", "docs/gemms.md")


@dataclasses.dataclass
class Example:
    line: int  # in the page
    command: str
    shown: list
    at: int = 0  # the line in the page where `shown` begins
    now: list = None  # `shown` as it would be printed now, if that is something else


def trimmed(lines):
    """Without blank lines at either end, and without blanks at the ends of lines."""
    return [line.rstrip(" ") for line in "\n".join(lines).strip("\n").split("\n")] if any(lines) else []


def examples_of(block, first):
    """Those of one block, whose first line is line `first`."""
    examples, goes_on = [], False
    for number, line in enumerate(block, first):
        if not goes_on and not line.startswith("podsim "):
            if line.strip() and not any(examples[-1].shown):
                examples[-1].at = number
            examples[-1].shown.append(line)
            continue
        if not goes_on:
            examples.append(Example(number, "", []))
        line = line.split("  # ")[0].rstrip(" ")
        goes_on = line.endswith("\\")
        examples[-1].command += line.rstrip("\\") + " "
    for example in examples:
        example.shown = trimmed(example.shown)
    return examples


def examples_in(page):
    """Those of every block that shows output."""
    examples, block = [], []
    for number, line in enumerate([*page.split("\n"), "end"]):
        if line.startswith("    ") or (block and not line):
            block.append(line[4:])
            continue
        found = examples_of(block, number - len(block) + 1) if block and block[0].startswith("podsim ") else []
        if any(example.shown for example in found):
            examples += found
        block = []
    return examples


def agrees(shown, printed):
    return printed.startswith(shown[:-3]) if shown.endswith(" ...") else shown == printed


def first_wrong(shown, printed):
    """The first shown line that is not there; None if all are."""
    at, anywhere = 0, False  # anywhere: behind `...`
    for line in shown:
        if line == "...":
            anywhere = True
            continue
        while anywhere and at < len(printed) and not agrees(line, printed[at]):
            at += 1
        if at == len(printed) or not agrees(line, printed[at]):
            return line
        at, anywhere = at + 1, False
    return None if anywhere or at == len(printed) else (shown or [""])[-1]


def rewritten(shown, printed):
    """The shown lines as they would be printed now."""

    def shortened(new, old):
        if not old.endswith(" ..."):
            return new
        return new[: max(len(old) - 4, 0)].rstrip(" ") + " ..." if not agrees(old, new) else old

    groups = [[]]  # of lines that follow one another
    for line in shown:
        groups[-1].append(line) if line != "..." else groups.append([])
    if len(groups) == 1:
        return [shortened(line, shown[i] if i < len(shown) else "") for i, line in enumerate(printed)]

    @functools.lru_cache(maxsize=None)
    def like(old, new):
        return 2 if agrees(old, new) else difflib.SequenceMatcher(None, old, new, autojunk=False).ratio()

    @functools.lru_cache(maxsize=None)
    def best(group, at):
        """(how alike, where each group begins) of the groups from this one on in the printed lines from `at` on."""
        lines = groups[group]
        last = group == len(groups) - 1
        if not lines:
            return (0, ()) if last else (best(group + 1, at)[0], (at, *best(group + 1, at)[1]))
        end = len(printed) - len(lines)
        begins = [at] if group == 0 else [end] if last else range(at, end + 1)
        found = [(-1, ())]
        for begin in begins:
            if at <= begin <= end:
                alike = sum(like(old, new) for old, new in zip(lines, printed[begin:]))
                rest = (0, ()) if last else best(group + 1, begin + len(lines))
                found.append((alike + rest[0], (begin, *rest[1])))
        return max(found)

    alike, begins = best(0, 0)
    if alike < 0:
        return printed
    new = []
    for group, lines in enumerate(groups):
        new += [] if group == 0 else ["..."]
        if lines:
            new += [shortened(printed[begins[group] + i], old) for i, old in enumerate(lines)]
    return new


def pages():
    found = []
    for folder, below, files in os.walk(ROOT):
        below[:] = sorted(name for name in below if not name.startswith(("build", ".")))
        found += [pathlib.Path(folder) / name for name in sorted(files) if name.endswith(".md")]
    return {str(page.relative_to(ROOT)): examples for page in found if (examples := examples_in(page.read_text()))}


def wrong_in(name, examples):
    """What is wrong with a page's examples."""
    wrong = []
    with tempfile.TemporaryDirectory() as root:
        for entry in ROOT.iterdir():
            if entry.is_dir():
                (pathlib.Path(root) / entry.name).symlink_to(entry)
        for example in examples:
            done = subprocess.run([PODSIM, *shlex.split(example.command)[1:]], cwd=root, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                wrong.append(f"{name}:{example.line}: {example.command}\nends with status {done.returncode}: {done.stderr}")
            elif example.shown and (line := first_wrong(example.shown, printed := trimmed(done.stdout.split("\n")))) is not None:
                example.now = rewritten(example.shown, printed)
                wrong.append(f"{name}:{example.line}: {example.command}\nshows\n  {line}\nwhere or behind which there is something else in\n{done.stdout}")
    return wrong


def update():
    found = pages()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        wrong = list(threads.map(wrong_in, found, found.values()))
    for name, examples in found.items():
        lines = (ROOT / name).read_text().split("\n")
        for example in reversed([example for example in examples if example.now is not None]):
            begin = example.at - 1
            lines[begin : begin + len(example.shown)] = [("    " + line).rstrip(" ") for line in example.now]
        (ROOT / name).write_text("\n".join(lines))
    print("\n".join(text for texts in wrong for text in texts if "ends with status" in text), end="")


class Examples(unittest.TestCase):
    def test_they_are_what_the_command_prints(self):
        found = pages()
        self.assertLessEqual(set(NEVER_WITHOUT), set(found))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            wrong = [text for texts in threads.map(wrong_in, found, found.values()) for text in texts]
        if wrong:
            self.fail("\n".join(wrong))


class TheTestItself(unittest.TestCase):
    def test_blocks_that_show_output_are_examples(self):
        found = examples_in("text\n\n    podsim a \\\n      --b  # why\n\n    one\n\n    two\n    podsim c\n\ntext\n\n    podsim no output\n")
        self.assertEqual([(example.line, example.command.split(), example.shown) for example in found],
                         [(3, ["podsim", "a", "--b"], ["one", "", "two"]), (9, ["podsim", "c"], [])])

    def test_they_are_held_against_what_is_printed_line_by_line(self):
        printed = ["one", "two", "three of them", "four"]
        for shown in (printed, ["one", "...", "four"], ["...", "two", "..."], ["...", "three ...", "four"]):
            self.assertIsNone(first_wrong(shown, printed), shown)
        for shown in (["one", "two"], ["two", "..."], ["one", "...", "two", "four"], ["one", "...", "five"], [*printed, "five"], ["...", "threes ...", "four"]):
            self.assertIsNotNone(first_wrong(shown, printed), shown)

    def test_updates_show_the_same_lines_as_they_are_printed_now(self):
        printed = ["one 1.5", "two", "three of them", "four 7", "five"]
        self.assertEqual(rewritten(["one 1.4", "old"], printed), printed)
        self.assertEqual(rewritten(["one 1.4", "...", "four 6", "..."], printed), ["one 1.5", "...", "four 7", "..."])
        self.assertEqual(rewritten(["...", "three ...", "four 6", "five"], printed), ["...", "three ...", "four 7", "five"])
        page = examples_in("text\n\n    podsim a\n\n    one\n    two\n    podsim b\n    three\n")
        self.assertEqual([example.at for example in page], [5, 8])


if __name__ == "__main__":
    PODSIM = pathlib.Path(sys.argv.pop()).resolve()
    ROOT = pathlib.Path(sys.argv.pop()).resolve()
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
