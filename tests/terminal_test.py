#!/usr/bin/env python3
"""What a terminal has beside what pipes and files get: bars, colours, charts as wide as it, progress with the time left.

usage: terminal_test.py PODSIM
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PODSIM = os.path.abspath(sys.argv.pop())
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
POD = ["--machine", "tpu_v4:spec", "--slice"]
RUN = ["run", *POD, "4x4", "--gemm", "m=4096,n=4096,k=4096", "--algorithm", "meshslice", "--slice-count", "4"]
PLAIN = {"TERM": "xterm-256color", "NO_COLOR": ""}
# Seconds of work on any computer; ended when they have told enough.
TRACED = ["run", "--machine", "tpu_v4", "--slice", "32x32", "--workload", "gpt3-block", "--batch", "1024", "--algorithm", "meshslice", "--slice-count", "8", "--trace-devices", "all", "--trace"]
LONG_RUN = ["run", *POD, "64x64", "--gemm", "m=524288,n=49152,k=12288", "--algorithm", "meshslice", "--slice-count", "48", "--pad", "--fold", "off", "--force",
            "--straggler", "3.2=0.8"]


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, words, columns=100, **environment):
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.read(0, 1)  # until it has its size
            os.execve(PODSIM, [PODSIM, *words], {**os.environ, **PLAIN, **environment})
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))
        os.write(self.screen, b"\n")
        self.shown = ""

    def read(self, until=None, seconds=120):
        """What is shown up to the end of the process, or until it has a pattern or so many seconds have passed."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and re.search(until, self.shown)):
            if not select.select([self.screen], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self.screen, 65536)
            except OSError:  # it has ended
                break
            self.shown += data.decode()
        return self.shown.removeprefix("\r\n").replace("\r\n", "\n")

    def stop(self):
        os.kill(self.pid, signal.SIGINT)
        self.read(seconds=30)
        return self.end()

    def end(self):
        os.close(self.screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def at_terminal(words, **how):
    terminal = Terminal(words, **how)
    shown = terminal.read()
    return terminal.end(), shown


def without_times(text):
    return re.sub(r"simulated in .*", "", text)


class Answers(unittest.TestCase):
    def test_bars_of_the_axes(self):
        status, shown = at_terminal(RUN)
        self.assertEqual(status, 0)
        bars = re.findall(r"(?m)^(row|col) .* (\S+)  +65\.6 %$", shown)
        self.assertEqual([axis for axis, _ in bars], ["row", "col"], shown)
        self.assertIn("\x1b[", bars[0][1])
        self.assertRegex(re.sub(r"\x1b\[[0-9;]*m", "", bars[0][1]), r"^#{12}={1}\.{7}$")

    def test_no_colours_where_they_are_unwanted(self):
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            _, shown = at_terminal(RUN, **environment)
            self.assertRegex(shown, r"#{12}=\.{7}   65\.6 %", environment)
            self.assertNotIn("\x1b", shown)

    def test_pipes_and_files_get_plain_text(self):
        piped = subprocess.run([PODSIM, *RUN], capture_output=True, text=True, timeout=60, env={**os.environ, **PLAIN})
        self.assertEqual((piped.returncode, piped.stderr), (0, ""))
        self.assertNotIn("\x1b", piped.stdout)
        self.assertNotIn("##", piped.stdout)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(at_terminal([*RUN, "-o", folder + "/run.txt"]), (0, ""))
            with open(folder + "/run.txt", encoding="utf-8") as file:
                self.assertEqual(without_times(file.read()), without_times(piped.stdout))

    def test_a_timeline_is_as_wide_as_the_terminal(self):
        with tempfile.TemporaryDirectory() as folder:
            record = folder + "/run.record"
            subprocess.run([PODSIM, *RUN, "--record", record], stdout=subprocess.DEVNULL, timeout=60, check=True)
            piped = {width: subprocess.run([PODSIM, "show", "timeline", record, *width], capture_output=True, text=True, timeout=60, check=True).stdout
                     for width in ((), ("--width", "100"), ("--width", "71"))}
            self.assertEqual(piped[()], piped["--width", "100"])
            self.assertEqual(at_terminal(["show", "timeline", record], columns=71, NO_COLOR="1"), (0, piped["--width", "71"]))
            status, coloured = at_terminal(["show", "timeline", record], columns=71)
            self.assertEqual(status, 0)
            self.assertIn("\x1b[", coloured)
            self.assertEqual(re.sub(r"\x1b\[[0-9;]*m", "", coloured), piped["--width", "71"])


class Progress(unittest.TestCase):
    def test_work_of_seconds_tells_its_rate_and_the_time_left(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/s.textproto", "w", encoding="ascii") as sweep:
                sizes = ", ".join(f'"m={2 ** 18 + 4096 * i},n=49152,k=12288"' for i in range(64))
                sweep.write(f'format_version: 1\nsweep {{ machine: "tpu_v4" slice: "16x32" gemm: [{sizes}] algorithm: "meshslice" slice_count: 16 fold: "off" pad: true }}\n')
            for words, told in (
                (LONG_RUN, r"\d+ % of \d+ task instances, [0-9.]+ million/s, \d+ s left"),
                (["compare", *POD, "16x32", "--mesh", "all", "--gemm", "m=262144,n=65536,k=65536", "--algorithms", "all", "--slice-count", "8,16", "--fold", "off"],
                 r"\d+ of \d+, [0-9.]+/s, \d+ s left: "),
                (["tune", *POD, "16x32x32", "--workload", "llama3-405b-block", "--exhaustive"], r"\d+ parts simulated, [0-9.]+/s; .*\d+ s left"),
                (["check", "--mesh", "row=8,col=8", "--gemm", "m=4096,n=4096,k=4096", "--algorithm", "meshslice", "--slice-count", "8"], r"\d+ of 100, [0-9.]+/s, \d+ s left: "),
                (["validate"], r"\d+ of \d+, [0-9.]+/s, \d+ s left: fits"),
                ([*TRACED, folder + "/t.json"], r"\d+ of \d+, [0-9.e+]+/s, \d+ s left: writing the trace"),
                ([*TRACED, folder + "/t.xplane.pb"], r"\d+ of \d+, [0-9.e+]+/s, \d+ s left: writing the trace"),
                (["calibrate", *8 * [os.path.join(ROOT, "validation/datasets/gemm_bf16_h100/observations.csv")], "--base", "dgx_h100", "--slice", "1x8"], r"[23] of 4, [0-9.]+/s, \d+ s left: fitting"),
                (["sweep", folder + "/s.textproto", "--store", folder + "/s.sqlite"], r"\[\d+/\d+\].* points/s, [0-9.]+ m?s left"),
            ):
                with self.subTest(words[0]):
                    terminal = Terminal(words, columns=160)
                    shown = terminal.read(until=told, seconds=300)  # on a computer that is busy otherwise
                    status = terminal.stop()
                    self.assertRegex(shown, told)
                    self.assertEqual(status, 130)

    def test_a_line_of_progress_is_no_wider_than_the_terminal(self):
        terminal = Terminal(LONG_RUN, columns=40)
        shown = terminal.read(until=r"task instanc.*\x1b\[K.*task instanc.*\r", seconds=60)
        terminal.stop()
        lines = [line for line in shown.split("\r\x1b[K") if line]
        self.assertTrue(lines)
        self.assertLess(max(map(len, lines)), 40, lines)

    def test_there_is_none_without_a_terminal_that_can_erase_a_line(self):
        terminal = Terminal(LONG_RUN, TERM="dumb")
        self.assertEqual(terminal.read(seconds=1.6), "")
        terminal.stop()
        self.assertNotIn("\x1b", terminal.shown)
        process = subprocess.Popen([PODSIM, *LONG_RUN], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1.6)
        process.send_signal(signal.SIGINT)
        self.assertNotIn("\x1b", process.communicate(timeout=30)[1])


if __name__ == "__main__":
    unittest.main()
