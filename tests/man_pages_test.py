#!/usr/bin/env python3
"""The manual: a page for each command of `podsim help`, which groff formats without a warning and which says what --help says.

usage: man_pages_test.py PODSIM
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PODSIM = os.path.abspath(sys.argv.pop())
SKIPPED = 77  # CTest's SKIP_RETURN_CODE


def printed(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


def commands():
    """["run"], ..., ["show", "mesh"], ... as the help lists them."""
    verbs = re.findall(r"^  ([a-z]+) +\S", printed(PODSIM, "help").split("first steps:")[0], re.M)
    targets = re.match(r"usage: podsim show (\S+)", printed(PODSIM, "help", "show"))[1].split("|")
    return [[verb] for verb in verbs if verb not in ("show", "help", "version")] + [["show", target] for target in targets]


class ManPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        printed(PODSIM, "man-pages", folder)
        cls.texts, cls.warnings = {}, {}
        for page in sorted(pathlib.Path(folder).iterdir()):
            # As text without bold and underlined letters, so wide that no option is cut in two.
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-rLL=400n", "-P-cbou", page], capture_output=True, text=True, timeout=60)
            cls.texts[page.name], cls.warnings[page.name] = done.stdout, done.stderr

    def test_there_is_one_of_each_command(self):
        names = ["podsim.1"] + ["-".join(["podsim", *words]) + ".1" for words in commands()]
        self.assertGreater(len(names), 20)
        self.assertEqual(sorted(self.texts), sorted(names))

    def test_groff_warns_of_nothing(self):
        for name, warnings in self.warnings.items():
            self.assertEqual(warnings, "", name)

    def has(self, name, line):
        """Wherever the page breaks the line, and however it writes headings."""
        shown = " ".join(line.removeprefix("usage:").removeprefix("exit status:").removesuffix(":").split())
        self.assertTrue(shown.lower() in " ".join(self.texts[name].split()).lower(), f"{name} has no {shown!r}")

    def test_they_have_every_option_and_line_of_the_help(self):
        for words in commands():
            name = "-".join(["podsim", *words]) + ".1"
            usage, options = printed(PODSIM, *words, "--help").split("\noptions:\n")
            for line in usage.splitlines():
                self.has(name, line)
            names = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", options, re.M)
            self.assertGreater(len(names), 2, name)
            for option in names:
                self.assertTrue(re.search(rf"(?m)^ +(?:-\w, )?{option}( |$)", self.texts[name]), f"{name} has no {option}")
            for line in options.splitlines():
                self.has(name, line[35:] if line[:35].isspace() or line[34:35] == " " else line)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"):
                self.assertRegex(self.texts[name], rf"(?m)^{section}$", name)

    def test_the_first_one_has_the_help(self):
        for line in printed(PODSIM, "help").splitlines():
            self.has("podsim.1", line)

    def test_where_they_cannot_be_written(self):
        done = subprocess.run([PODSIM, "man-pages", "/nonexistent"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent/podsim.1", done.stderr)


if __name__ == "__main__":
    if shutil.which("groff") is None:
        print("man_pages_test.py: skipped: there is no groff (Debian package groff-base)")
        sys.exit(SKIPPED)
    unittest.main()
