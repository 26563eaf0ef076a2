#!/usr/bin/env python3
"""Tests of check_each_file.py on a small repository whose build compiles several files as one."""

import json
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_each_file.py")
COMPILER = shutil.which("c++") or shutil.which("g++")


class CheckEachFile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        self.git("init", "-q")
        self.commit({"a/first.cpp": "#include <string>\nstd::string first;\n", "a/good.hpp": "#pragma once\n#include <string>\nstd::string good();\n"})

    def tearDown(self):
        self.folder.cleanup()

    def git(self, *arguments):
        names = ["-c", "user.name=x", "-c", "user.email=x@x.example"]
        subprocess.run(["git", "-C", self.root, *names, *arguments], check=True, stdout=subprocess.DEVNULL)

    def commit(self, files):
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
            with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
                file.write(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def run_script(self, *arguments, prefix=""):
        build = os.path.join(self.root, "build")
        os.makedirs(build, exist_ok=True)
        sources = [path for path in subprocess.run(["git", "-C", self.root, "ls-files", "*.cpp"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()]
        commands = [{"directory": build, "file": os.path.join(self.root, path), "command": f"{prefix}{COMPILER} -I{self.root} -o x.o -c {self.root}/{path}"}
                    for path in sources]
        with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump(commands, file)
        done = subprocess.run([sys.executable, SCRIPT, "--root", self.root, "--build", build, *arguments], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout

    def test_a_source_that_lives_on_includes_of_others_is_found(self):
        self.commit({"a/second.cpp": "std::string second;\n"})
        status, output = self.run_script("--all", prefix="env A=b ccache ")
        self.assertEqual(status, 1)
        self.assertIn("a/second.cpp does not compile for itself", output)
        self.assertIn("check_each_file: 3 of 3 files compiled for themselves, 1 do not", output)

    def test_a_header_is_compiled_for_itself(self):
        self.commit({"a/bad.hpp": "#pragma once\nstd::string bad();\n"})
        status, output = self.run_script("--all")
        self.assertEqual(status, 1)
        self.assertIn("a/bad.hpp does not compile for itself", output)

    def test_a_header_that_its_source_includes_first_is_compiled_once(self):
        self.commit({"a/pair.hpp": "#pragma once\nstd::string pair();\n", "a/pair.cpp": '// Says what it is.\n#include "a/pair.hpp"\n#include <string>\n',
                     "a/late.hpp": "#pragma once\nstd::string late();\n", "a/late.cpp": '#include <string>\n#include "a/late.hpp"\n'})
        status, output = self.run_script("--all")
        self.assertEqual(status, 1)
        self.assertIn("a/pair.cpp does not compile for itself", output)
        self.assertIn("a/late.hpp does not compile for itself", output)
        self.assertIn("check_each_file: 5 of 6 files compiled for themselves, 2 do not", output)

    def test_what_the_last_commit_changed_is_always_looked_at(self):
        self.commit({f"a/new{n}.cpp": f"std::string new{n};\n" for n in range(14)})
        status, output = self.run_script()
        self.assertEqual(status, 1)
        self.assertEqual(output.count("does not compile for itself"), 14)

    def test_others_are_looked_at_on_one_day_of_eight_weeks(self):
        self.commit({f"a/old{n}.cpp": f"std::string old{n};\n" for n in range(14)})
        found = 0
        for day in range(56):
            os.environ["GIT_COMMITTER_DATE"] = f"{datetime.date(2024, 1, 1) + datetime.timedelta(days=day)}T12:00:00Z"
            self.git("commit", "-q", "--allow-empty", "-m", "x")
            found += self.run_script()[1].count("does not compile for itself")
        del os.environ["GIT_COMMITTER_DATE"]
        self.assertEqual(found, 14)

    def test_a_build_that_is_not_configured_is_an_error(self):
        done = subprocess.run([sys.executable, SCRIPT, "--root", self.root, "--build", self.root], stderr=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
