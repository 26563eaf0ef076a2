#!/usr/bin/env python3
"""Completion in the shells themselves: bash's function on the variables that bash sets, zsh at a terminal.

usage: completion_test.py PODSIM FOLDER_OF_SCRIPTS
"""

import fcntl
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

SCRIPTS = pathlib.Path(sys.argv.pop()).resolve()
PODSIM = os.path.abspath(sys.argv.pop())

# A line, and what it may become. bash replaces the text behind the last character of COMP_WORDBREAKS, such as `=`.
LINES = [
    ("podsim che", ["check"]),
    ("podsim show to", ["topology"]),
    ("podsim run --mach", ["--machine"]),
    ("podsim run --machine tpu_v5", ["tpu_v5e", "tpu_v5p"]),
    ("podsim run --machine=tpu_v5", ["tpu_v5e", "tpu_v5p"]),
    ("podsim tune --workload gpt3-", ["gpt3-block", "gpt3-mlp"]),
    ("podsim run --mesh x=4,y=2 --collective all-reduce --axis ", ["x", "y"]),
    ("podsim run --mesh x=4,y=2 --axis y,", ["y,x"]),
    ("podsim run --mesh row=2,c", ["2,col="]),
    ("podsim run --set link.lat", ["link.latency="]),
    ("podsim report one", ["one.record"]),
    ("podsim report one.record tw", ["two words.record"]),
    ("podsim run --schedule=one", ["one.record"]),
    ("podsim compare --machine tpu_v4,./on", ["tpu_v4,./one.record"]),
    ("podsim run --format ", ["csv", "json", "table"]),
    ("podsim rum --", []),
    ("podsim run 'unclosed", []),
]

BASH = """
compopt() {{ :; }}
source {script}
COMP_LINE={line}
COMP_POINT=${{#COMP_LINE}}
_podsim {podsim}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        for name in ("one.record", "two words.record"):
            pathlib.Path(self.folder, name).touch()

    @unittest.skipIf(shutil.which("bash") is None, "there is no bash")
    def test_bash(self):
        for line, expected in LINES:
            script = BASH.format(script=SCRIPTS / "podsim.bash", line=shlex.quote(line), podsim=PODSIM)
            done = subprocess.run(["bash", "--norc", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.stderr, "", line)
            self.assertEqual(sorted(filter(None, done.stdout.split("\n"))), expected, line)

    def at_terminal(self, command, keys, **environment):
        """The line that a shell has when these keys have been typed: the keys behind them make `echo` print it."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe(command[0], command, {**os.environ, "TERM": "dumb", "PATH": f"{os.path.dirname(PODSIM)}:{os.environ['PATH']}", **environment})
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 50, 300, 0, 0))
        shown, end, to_type = "", time.monotonic() + 60, keys + "\x01echo line: \n"  # Ctrl-A: to the beginning of the line
        try:
            while time.monotonic() < end and not re.search(r"(?m)^line: .*\r$", shown):
                if select.select([terminal], [], [], 0.1)[0]:
                    shown += os.read(terminal, 65536).decode(errors="replace")
                if to_type and "ready> " in shown:
                    os.write(terminal, to_type.encode())
                    to_type = ""
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)
        found = re.search(r"(?m)^line: podsim (.*?) *\r$", shown)
        return found[1] if found else shown

    TYPED = (
        ("podsim che\t", "check"),
        ("podsim run --mesh x=4,y=2 --axi\ty,\t--pad", "run --mesh x=4,y=2 --axis y,x --pad"),
        ("podsim run --machine=tpu_v5e --workl\tgpt3-b\t", "run --machine=tpu_v5e --workload gpt3-block"),
        ("podsim run --set link.lat\t1us", "run --set link.latency=1us"),
        ("podsim run --schedule=one\t", "run --schedule=one.record"),
        ("podsim show timeline two\t", "show timeline two words.record"),
    )

    @unittest.skipIf(shutil.which("bash") is None, "there is no bash")
    def test_bash_at_a_terminal(self):
        pathlib.Path(self.folder, "rc").write_text(f"PS1='ready> '\nbind 'set enable-bracketed-paste off'\nset -o emacs\nsource {SCRIPTS}/podsim.bash\n", encoding="utf-8")
        for keys, line in self.TYPED:
            self.assertEqual(self.at_terminal(["bash", "--rcfile", "rc", "-i"], keys), line)

    @unittest.skipIf(shutil.which("zsh") is None, "skipped: there is no zsh")
    def test_zsh_at_a_terminal(self):
        pathlib.Path(self.folder, ".zshrc").write_text(f"fpath=({SCRIPTS} $fpath)\nautoload -Uz compinit\ncompinit -u -d {self.folder}/dump\nPS1='ready> '\nunset zle_bracketed_paste\nbindkey -e\n",
                                                       encoding="utf-8")
        for keys, line in self.TYPED:
            self.assertEqual(self.at_terminal(["zsh", "-i"], keys, ZDOTDIR=self.folder), line)


if __name__ == "__main__":
    unittest.main()
