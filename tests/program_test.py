#!/usr/bin/env python3
"""The program as a process: signals, standard output that cannot be written, children that are killed, libraries that are missing.

usage: program_test.py PODSIM
"""

import contextlib
import fcntl
import glob
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PODSIM = os.path.abspath(sys.argv.pop())
RUN = ["run", "--machine", "ideal", "--slice", "4", "--collective", "all-gather", "--axis", "row", "--bytes", "1KiB"]
# Half a minute of SimGrid, if nobody ends it.
LONG = ["--machine", "tpu_v4", "--slice", "64x64", "--collective", "all-to-all", "--axis", "row,col", "--bytes", "64MiB", "--algorithm", "direct",
        "--engine", "simgrid"]


def podsim(*words, **options):
    return subprocess.run([PODSIM, *words], stderr=subprocess.PIPE, text=True, timeout=60, **options)


def wait_for(condition):
    """What a condition returns once it is true."""
    for _ in range(3000):
        if found := condition():
            return found
        time.sleep(0.01)
    raise TimeoutError


def child_of(process):
    """The process that a process has started."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as children:
        return next(map(int, children.read().split()), 0)


def handles_signals(process):
    """Whether it is past its first moments, in which Ctrl-C ends it as any process."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        caught = next(line for line in status if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1


def threads_of(process):
    """Those that compute: the one that writes progress sleeps. 0: it has ended."""
    threads = 0
    for name in glob.glob(f"/proc/{process.pid}/task/*/comm"):
        with contextlib.suppress(OSError), open(name, encoding="ascii") as comm:
            threads += comm.read() != "progress\n"
    return threads


def has_loaded(process, library):
    with open(f"/proc/{process.pid}/maps", encoding="ascii") as maps:
        return library in maps.read()


def opened_for_writing(pipe):
    """A descriptor, once somebody reads the pipe."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


class Libraries(unittest.TestCase):
    """OpenBLAS, FFTW, SimGrid and cairo are loaded by what needs them, and by nothing else."""

    CHECK = ["check", "--mesh", "row=2,col=2", "--gemm", "m=64,n=64,k=64", "--algorithm", "collective"]

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def test_the_program_starts_without_them(self):
        listed = podsim(*RUN, stdout=subprocess.PIPE, env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"})
        self.assertIn("libc.so", listed.stdout)
        self.assertEqual([line for line in listed.stdout.splitlines() if re.search("blas|lapack|fftw|simgrid|cairo", line)], [])

    def test_the_program_alone_runs_but_for_simgrid(self):
        alone = shutil.copy(PODSIM, self.folder)
        for engine, status in (("des", 0), ("analytic", 0), ("simgrid", 2)):
            result = subprocess.run([alone, *RUN, "--engine", engine], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, r"^podsim: error: podsim_simgrid\.so cannot be loaded: .*\. Install podsim with its modules beside it, and SimGrid .*\n$")

    def test_one_that_cannot_be_loaded_is_named_with_what_to_install(self):
        for library, package, words in (
            ("libopenblas.so.0", "libopenblas0-pthread", self.CHECK),
            ("libfftw3f.so.3", "libfftw3-single3", self.CHECK),
            ("libfftw3.so.3", "libfftw3-double3", self.CHECK),
            ("libcairo.so.2", "libcairo2", ["show", "sharding", "--array", "16x16", "--mesh", "x=4,y=2", "--spec", "x,y", "-o", f"{self.folder}/out.png"]),
        ):
            with self.subTest(library), tempfile.TemporaryDirectory() as broken:
                with open(os.path.join(broken, library), "wb"):
                    pass
                result = podsim(*words, stdout=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": broken})
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                self.assertIn(f"{library} cannot be loaded: ", result.stderr)
                self.assertIn(f"(Debian: {package})", result.stderr)


class StandardOutput(unittest.TestCase):
    """Output that is lost is no success."""

    LINES = [RUN, ["check", *RUN[3:]], ["show", "machine"], ["--help"], ["help", "run"], ["--version"]]

    def test_full(self):
        for line in self.LINES:
            with open("/dev/full", "w", encoding="ascii") as full:
                result = podsim(*line, stdout=full)
            self.assertEqual((result.returncode, result.stderr), (2, "podsim: error: standard output: No space left on device\n"), line)

    def test_closed(self):
        for line in self.LINES:
            result = podsim(*line, preexec_fn=lambda: os.close(1))
            self.assertEqual((result.returncode, result.stderr), (2, "podsim: error: standard output: Bad file descriptor\n"), line)

    def test_closed_but_not_needed(self):
        with tempfile.TemporaryDirectory() as folder:
            result = podsim(*RUN, "-o", folder + "/r.json", "--format", "json", preexec_fn=lambda: os.close(1))
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(os.listdir(folder), ["r.json"])
            with open(folder + "/r.json", encoding="ascii") as file:
                self.assertTrue(file.read().startswith("{"))

    def test_its_name_as_a_file(self):
        line = ["show", "machine", "--machine", "ideal"]
        result = podsim(*line, "-o", "/dev/stdout", stdout=subprocess.PIPE)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, podsim(*line, stdout=subprocess.PIPE).stdout)


class Braces(unittest.TestCase):
    """A name may hold what formats take for a place: it is a name."""

    NAMES = ["a{}b", "{0}", "{", "}{", "{:>9}", "%s{}%n"]

    def done(self, *words):
        result = podsim(*words, stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, (words, result.stderr))
        return result.stdout

    def test_what_is_written_is_read(self):
        for name in self.NAMES:
            with self.subTest(name), tempfile.TemporaryDirectory() as parent:
                folder = os.path.join(parent, "in " + name)
                os.mkdir(folder)
                at = os.path.join(folder, name)
                plain = json.loads(self.done(*RUN, "--format", "json"))["makespan_s"]

                def makespan(*words):
                    return json.loads(self.done("run", *words, "--format", "json"))["makespan_s"]

                self.done(*RUN, "--chakra-out", at, "--record", at + ".podsim", "--trace", at + ".xplane.pb", "--format", "json", "-o", at + ".json")
                self.assertEqual(makespan("--machine", "ideal", "--chakra", at), plain)
                self.assertIn("all-gather", self.done("show", "timeline", at + ".podsim"))
                self.assertIn("all-gather", self.done("diff", "--measured", at + ".xplane.pb", at + ".json"))
                self.done("report", at + ".podsim", "-o", at + ".html")
                self.done(*["show", "schedule", *RUN[1:], "-o", at + ".schedule.textproto"])
                self.assertEqual(makespan("--machine", "ideal", "--slice", "4", "--schedule", at + ".schedule.textproto"), plain)
                self.done("show", "machine", "--machine", "ideal", "-o", at + ".machine.textproto")
                self.assertEqual(makespan("--machine", at + ".machine.textproto", *RUN[3:]), plain)
                self.done("show", "training", "gemma-2b", "-o", at + ".model.textproto")
                self.assertIn("parameters", self.done("show", "training", at + ".model.textproto"))
                written = {f"{name}{end}" for end in (".0.et", ".1.et", ".2.et", ".3.et", ".podsim", ".xplane.pb", ".json", ".html", ".schedule.textproto", ".machine.textproto",
                                                      ".model.textproto")}
                self.assertEqual(set(os.listdir(folder)), written)

    def test_they_are_named_as_they_are(self):
        for name in self.NAMES:
            for words in (["run", "--machine", "ideal", "--slice", "2", "--schedule", f"/{name}.textproto"], ["run", "--machine", "ideal", "--chakra", "/" + name],
                          ["run", "--machine", f"/{name}.textproto"], [*RUN, "-o", f"/none/{name}.json"], ["show", "timeline", f"/{name}.podsim"]):
                result = podsim(*words, stdout=subprocess.PIPE)
                self.assertEqual(result.returncode, 2, words)
                self.assertIn("/" + name, result.stderr)


class Names(unittest.TestCase):
    """What a terminal obeys is printed as text."""

    def test_control_characters_of_names_are_escaped(self):
        title = "\x1b]0;owned\a"
        with tempfile.TemporaryDirectory() as folder:
            schedule = os.path.join(folder, f"s{title}.textproto")
            with open(schedule, "w", encoding="utf-8") as file:
                file.write(r'format_version: 1 name: "x\033]0;owned\007" mesh { name: "a\033[2J" size: 2 } program { }')
            outputs = [podsim("run", "--machine", "ideal", "--slice", "2", "--schedule", schedule, stdout=subprocess.PIPE),
                       podsim("show", "schedule", schedule, stdout=subprocess.PIPE),
                       podsim("run", "--machine", "ideal", "--slice", "2", "--schedule", schedule + "x", stdout=subprocess.PIPE),
                       podsim("run", f"--machine=m{title}", stdout=subprocess.PIPE)]
        for output in outputs:
            self.assertNotRegex(output.stdout + output.stderr, r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
        self.assertIn(r"\x1b]0;owned\x07", outputs[0].stdout)
        self.assertIn(r"\x1b]0;owned\x07", outputs[2].stderr)


class Files(unittest.TestCase):
    """A file is whole or not there, and the reason is said."""

    GEMM = ["run", "--machine", "tpu_v4", "--slice", "4x4", "--gemm", "m=4096,n=4096,k=4096", "--algorithm", "meshslice", "--slice-count", "4"]
    RUNS = [["--trace", "t.json"], ["--trace", "t.json.gz"], ["--trace", "t.xplane.pb"], ["--trace", "profiles"], ["--record", "run.record"], ["-o", "run.txt"],
            ["-o", "run.pb"], ["--chakra-out", "step"]]

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.inputs = self.enterContext(tempfile.TemporaryDirectory())
        self.record = self.inputs + "/run.record"
        self.assertEqual(podsim(*self.GEMM, "--record", self.record, stdout=subprocess.DEVNULL).returncode, 0)
        self.lines = [[*self.GEMM, *output] for output in self.RUNS] + [["report", self.record, "-o", "page.html"], ["show", "timeline", self.record, "-o", "line.txt"]]

    def files(self):
        return [name for _, _, names in os.walk(self.folder) for name in names]

    def test_a_disk_that_is_full(self):
        """As a limit of the size of files: nothing of the kind is left by any output."""
        for line in self.lines:
            result = podsim(*line, stdout=subprocess.DEVNULL, cwd=self.folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
            self.assertEqual((result.returncode, self.files()), (2, []), line)
            self.assertRegex(result.stderr, r"^podsim: error: .*: cannot write the file: File too large\n$", line)

    def test_a_set_of_traces_is_of_one_run(self):
        """Where the last of its files cannot be written, the others stay those of an earlier run."""
        traces = ["--chakra-out", "step"]
        self.assertEqual(podsim(*self.GEMM, *traces, stdout=subprocess.DEVNULL, cwd=self.folder).returncode, 0)
        last = os.path.join(self.folder, "step.15.et")
        os.remove(last)
        os.mkdir(last)

        def contents():
            return {name: pathlib.Path(self.folder, name).read_bytes() for name in self.files()}
        before = contents()
        self.assertGreaterEqual(len(before), 15)
        other = list(self.GEMM)
        other[other.index("--gemm") + 1] = "m=8192,n=4096,k=4096"
        result = podsim(*other, *traces, stdout=subprocess.DEVNULL, cwd=self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn("step.15.et", result.stderr)
        self.assertEqual(contents(), before)
        os.rmdir(last)
        self.assertEqual(podsim(*other, *traces, stdout=subprocess.DEVNULL, cwd=self.folder).returncode, 0)
        self.assertTrue(all(after != before[name] for name, after in contents().items() if name in before and name.endswith(".et")))

    def test_a_device_that_is_full(self):
        for line in self.lines:
            if line[-2] != "--chakra-out" and line[-1] != "profiles":  # folders and prefixes
                result = podsim(*line[:-1], "/dev/full", stdout=subprocess.DEVNULL)
                self.assertEqual(result.returncode, 2, line)

    def test_a_folder_that_takes_no_files(self):
        os.mkdir(self.folder + "/closed", 0o555)
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        os.chmod(self.folder, 0o755)
        os.chmod(self.inputs, 0o755)
        for line in self.lines:
            try:
                result = podsim(*line, stdout=subprocess.DEVNULL, cwd=self.folder + "/closed", **user)
            except PermissionError:
                self.skipTest("the program is root's alone")
            self.assertEqual((result.returncode, self.files()), (2, []), line)
            self.assertRegex(result.stderr, r"Permission denied\n$", line)

    def test_a_reader_that_has_enough(self):
        """run | head: what is written beside the output is whole."""
        for output in ("t.json", "run.record"):
            reader, writer = os.pipe()
            os.close(reader)
            result = podsim(*self.GEMM, "--per", "device", "--trace" if output.endswith("json") else "--record", output, stdout=writer, cwd=self.folder)
            os.close(writer)
            self.assertIn(result.returncode, (2, -signal.SIGPIPE), result.stderr)
        self.assertEqual(sorted(self.files()), ["run.record", "t.json"])
        with open(self.folder + "/t.json", encoding="utf-8") as file:
            self.assertTrue(json.load(file))
        self.assertEqual(podsim("show", "timeline", self.folder + "/run.record", stdout=subprocess.DEVNULL).returncode, 0)

    def test_ctrl_c_while_a_trace_is_written(self):
        # Ten gigabytes, if nobody ends it.
        pod = ["--machine", "tpu_v4", "--slice", "64x64", "--gemm", "m=524288,n=49152,k=12288", "--algorithm", "meshslice", "--slice-count", "48", "--pad"]
        process = subprocess.Popen([PODSIM, "run", *pod, "--trace", "t.json", "--trace-devices", "all"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        wait_for(lambda: any(os.path.getsize(os.path.join(self.folder, name)) > 100_000 for name in os.listdir(self.folder)))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, err, os.listdir(self.folder)), (130, "podsim: interrupted\n", []))


class ProcessCase(unittest.TestCase):
    """Processes in a session and with a folder of their own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, *words, stdout=subprocess.PIPE):
        process = subprocess.Popen([PODSIM, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.kill)
        return process


class Signals(ProcessCase):
    """Ctrl-C and SIGTERM leave neither children nor parts of files."""

    def test_a_run_by_simgrid_ends_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("run", *LONG, "--trace", self.folder + "/t.json", "-o", self.folder + "/r.json")
            child = wait_for(lambda: child_of(process))
            os.killpg(process.pid, number)  # as a terminal does: the child has it as well
            _, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, err), (130, "podsim: interrupted\n"))
            self.assertFalse(os.path.exists(f"/proc/{child}"))
            self.assertEqual(os.listdir(self.folder), [])

    def test_the_second_signal_ends_at_once_and_leaves_no_parts(self):
        with open(self.folder + "/t.json", "w", encoding="ascii") as file:
            file.write("as it was")
        process = self.start("run", *LONG, "--trace", self.folder + "/t.json")
        wait_for(lambda: len(os.listdir(self.folder)) == 2)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)  # both wait until it goes on
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=30)
        self.assertIn(process.returncode, (-signal.SIGINT, -signal.SIGTERM))
        self.assertEqual(os.listdir(self.folder), ["t.json"])
        with open(self.folder + "/t.json", encoding="ascii") as file:
            self.assertEqual(file.read(), "as it was")

    def test_every_verb_ends(self):
        pod = ["--machine", "tpu_v4", "--slice"]
        for words in (
            ["tune", *pod, "16x32x32", "--workload", "llama3-405b-block", "--exhaustive"],
            ["tune", "--machine", "tpu_v4", "--chips", "1024", "--slices", "2-d", "--workload", "gpt3-block", "--exhaustive", "--baseline", "meshslice-reference"],
            ["compare", *pod, "16x32x32", "--mesh", "row=16,col=1024", "--workload", "llama3-405b-block", "--algorithms", "all"],
            ["run", *pod, "64x64", "--gemm", "m=524288,n=49152,k=12288", "--algorithm", "meshslice", "--slice-count", "96", "--pad", "--fold", "off", "--force"],
            ["check", "--slice", "512", "--collective", "reduce-scatter", "--axis", "row", "--bytes", "1MiB", "--algorithm", "ring"],
            ["validate"],
        ):
            for after in (0, 0.05, 0.5, 1):
                process = self.start(*words)
                wait_for(lambda: handles_signals(process))
                time.sleep(after)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 130, (words, after, err))
        self.assertEqual(os.listdir(self.folder), [])

    def test_tune_says_what_it_knows_though_the_search_does_not_hear_the_signal(self):
        pod = ["--machine", "tpu_v4", "--chips", "64", "--exhaustive", "--format", "json", "--threads", "1"]
        for words in (["--workload", "gpt3-block"], ["--training", "llama3-8b"]):
            for known in (False, True):
                master, slave = pty.openpty()
                process = subprocess.Popen([PODSIM, "tune", *pod, *words], stdout=subprocess.PIPE, stderr=slave, text=True, start_new_session=True)
                self.addCleanup(process.__exit__, None, None, None)
                self.addCleanup(process.kill)
                os.close(slave)
                wait_for(lambda: handles_signals(process))
                if known:
                    told = b""
                    while b"best so far" not in told:
                        told += os.read(master, 4096)
                process.send_signal(signal.SIGINT)
                process.send_signal(signal.SIGSTOP)  # the time to answer passes
                time.sleep(0.5)
                process.send_signal(signal.SIGCONT)
                out, _ = process.communicate(timeout=60)
                os.close(master)
                self.assertEqual(process.returncode, 130, words)
                answer = json.loads(out)
                self.assertTrue(answer["interrupted"], words)
                if known:
                    self.assertGreater(len(answer["plans"]), 0, words)

    def test_one_thread_is_one_thread(self):
        pod = ["--machine", "tpu_v4", "--slice"]
        for words in (
            ["tune", *pod, "8x8x8", "--workload", "llama3-405b-block", "--exhaustive"],
            ["compare", *pod, "8x8x8", "--mesh", "all", "--gemm", "m=65536,n=65536,k=65536", "--algorithms", "all", "--slice-count", "8,16", "--fold", "off"],
            ["run", *pod, "16x16", "--workload", "gpt3-block", "--fold", "off"],
            ["check", "--mesh", "row=8,col=8", "--gemm", "m=4096,n=4096,k=4096", "--algorithm", "meshslice", "--slice-count", "8"],
            ["validate", "b200_8_nccl"],
        ):
            process = self.start(*words, "--threads", "1")
            wait_for(lambda: handles_signals(process))
            if words[0] == "check":  # OpenBLAS starts threads when it is loaded
                wait_for(lambda: has_loaded(process, "libfftw3.so"))
            wait_for(lambda: threads_of(process) <= 1)  # one that has been ended is counted for some moments more
            most = 0
            for _ in range(40):
                most = max(most, threads_of(process))
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
            self.assertLessEqual(most, 1, words)

    def test_an_answer_that_nobody_reads_ends(self):
        reader, writer = os.pipe()
        size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = self.start("show", "schedule", "--slice", "64", "--collective", "all-reduce", "--axis", "row", "--bytes", "64MiB", "--lowered",
                             stdout=writer)
        os.close(writer)
        in_pipe = struct.Struct("i")
        wait_for(lambda: in_pipe.unpack(fcntl.ioctl(reader, termios.FIONREAD, in_pipe.pack(0)))[0] == size)  # it waits for the reader
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 130)
        os.close(reader)

    def test_reading_what_nobody_writes_ends(self):
        os.mkfifo(self.folder + "/pipe")
        for option in ("--schedule", "--plan", "--machine", "--workload"):
            process = self.start("run", "--slice", "4", *(["--machine", "ideal"] if option != "--machine" else RUN[5:]), option, self.folder + "/pipe")
            writer = wait_for(lambda: opened_for_writing(self.folder + "/pipe"))
            time.sleep(0.1)  # until it waits for bytes
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
            os.close(writer)
            self.assertEqual((process.returncode, err), (130, "podsim: interrupted\n"), option)
        for words in (["calibrate", "--observations-only", "--from", "nccl-tests"], ["validate", "--machine", "tpu_v4", "--slice", "2x2", "--observations"]):
            process = self.start(*words, self.folder + "/pipe")
            writer = wait_for(lambda: opened_for_writing(self.folder + "/pipe"))
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
            os.close(writer)
            self.assertEqual((process.returncode, err), (130, "podsim: interrupted\n"), words)


class Sweeps(ProcessCase):
    """Interrupted or killed is not a result."""

    def setUp(self):
        super().setUp()
        self.store = self.folder + "/s.sqlite"
        self.sweep = self.folder + "/s.textproto"
        options = " ".join(f'{name[2:]}: "{value}"' for name, value in zip(LONG[::2], LONG[1::2]))
        self.write(options)

    def write(self, options):
        with open(self.sweep, "w", encoding="ascii") as file:
            file.write("format_version: 1\nsweep { " + options + " }\n")

    def statuses(self):
        with contextlib.closing(sqlite3.connect(self.store)) as store:
            return store.execute("SELECT status, reason FROM results ORDER BY point").fetchall()

    def test_ctrl_c_while_simgrid_runs(self):
        process = self.start("sweep", self.sweep, "--store", self.store)
        wait_for(lambda: child_of(process))
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("podsim: interrupted: 0 of 1 points are done", err)
        self.assertEqual(self.statuses(), [("remaining", None)])

    def test_a_child_that_is_killed(self):
        process = self.start("sweep", self.sweep, "--store", self.store)
        os.kill(wait_for(lambda: child_of(process)), signal.SIGKILL)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(err, "podsim: 1 of 1 points could not be run on this computer; the same command tries them again\n"
                              "  point 1: simgrid: the child process died of signal 9 (Killed)\n")
        self.assertEqual(self.statuses(), [("remaining", None)])

    def test_a_child_of_compare_that_is_killed(self):
        words = [word.replace("--algorithm", "--algorithms") for word in LONG]
        process = self.start("compare", *words)
        os.kill(wait_for(lambda: child_of(process)), signal.SIGKILL)
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out, err), (2, "", "podsim: error: simgrid: the child process died of signal 9 (Killed)\n"))

    def test_a_query_without_end(self):
        self.write('machine: "ideal" slice: "4" collective: "all-gather" axis: "row" bytes: "16"')
        self.assertEqual(podsim("sweep", self.sweep, "--store", self.store, stdout=subprocess.DEVNULL).returncode, 0)
        process = self.start("sweep", "--store", self.store, "--query",
                             "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c")
        wait_for(lambda: handles_signals(process))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, err), (130, "podsim: interrupted\n"))


if __name__ == "__main__":
    unittest.main()
