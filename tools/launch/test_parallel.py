#!/usr/bin/env python3
"""parallel_sweep.sh: shards that fail are tried again, here or on another computer, and the merged store exports what one process does.
Without GNU parallel (Debian package parallel) the test is skipped (77) and says so.

usage: test_parallel.py PODSIM
"""

import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

PODSIM = os.path.abspath(sys.argv.pop()) if len(sys.argv) > 1 else ""
SKIPPED = 77  # CTest's SKIP_RETURN_CODE
LAUNCH = pathlib.Path(__file__).resolve().parent
SWEEP = """format_version: 1
sweep {
  machine: "tpu_v4" slice: "8x8" engine: "simgrid"
  set { path: "link.bandwidth" value: ["20 GB/s", "40 GB/s", "60 GB/s", "80 GB/s"] }
  gemm: ["m=65536,n=16384,k=16384", "m=32768,n=16384,k=16384", "m=16384,n=16384,k=16384"]
  algorithm: "meshslice" slice_count: [4, 8]
}
"""
POINTS = 4 * 3 * 2
# A store is written once in 100 ms: SimGrid takes over a second of a core for a shard of this sweep, and thus writes several times, on any computer.
LONGER_SWEEP = SWEEP.replace('slice: "8x8"', 'slice: "16x16"')


class ShardsByParallel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.root.name) / "a study"  # names may hold spaces
        cls.folder.mkdir()
        for sweep, text in (("sweep", SWEEP), ("longer", LONGER_SWEEP)):
            (cls.folder / f"{sweep}.textproto").write_text(text)
            cls.run_podsim("sweep", f"{sweep}.textproto", "--store", f"{sweep}_alone.sqlite")

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    @classmethod
    def run_podsim(cls, *words):
        return subprocess.run([PODSIM, *words], cwd=cls.folder, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout

    def script(self, name, text):
        path = pathlib.Path(self.root.name) / name  # parallel takes its ssh as words
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def launched(self, store, *options, sweep="sweep", podsim=PODSIM, **environment):
        return subprocess.Popen([LAUNCH / "parallel_sweep.sh", f"{sweep}.textproto", store, "2", *options], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env={**os.environ, "PODSIM": podsim, **environment})

    def expect_the_export_of_one_process(self, launched, store, sweep="sweep"):
        out, err = launched.communicate(timeout=120)
        self.assertEqual(launched.returncode, 0, out + err)
        for format in ("csv", "json"):
            merged, alone = (self.run_podsim("sweep", "--store", name, "--export", format) for name in (store, f"{sweep}_alone.sqlite"))
            self.assertTrue(merged == alone, err)

    def stored(self, store):
        sql = "SELECT count(*) AS points FROM results WHERE status != 'remaining'"
        done = subprocess.run([PODSIM, "sweep", "--store", store, "--format", "csv", "--query", sql], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        return int(done.stdout.split()[1]) if done.returncode == 0 else 0

    def killed_on_its_way(self, pids, part):
        """The number of points that the first shard had stored when it was killed. It is stopped while it is looked at: it goes 2 ms at a time."""
        end = time.monotonic() + 60
        while not pids.exists() or not pids.read_text().endswith("\n"):
            self.assertLess(time.monotonic(), end, "the first shard has not begun")
            time.sleep(0.001)
        pid = int(pids.read_text())
        while True:
            os.kill(pid, signal.SIGSTOP)
            if before := self.stored(part):
                os.kill(pid, signal.SIGKILL)
                return before
            self.assertLess(time.monotonic(), end, "the first shard has stored nothing")
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.002)

    def test_a_shard_that_is_killed_goes_on_where_it_was(self):
        noting = self.script("noting", f'[ "$4" != 1/2 ] || echo $$ >> first_shard.pids\nexec {PODSIM} "$@"\n')
        launched = self.launched("killed.sqlite", sweep="longer", podsim=noting)
        part = "killed-1-of-2.sqlite"
        pids = self.folder / "first_shard.pids"
        before = self.killed_on_its_way(pids, part)
        self.expect_the_export_of_one_process(launched, "killed.sqlite", sweep="longer")
        self.assertEqual(len(pids.read_text().split()), 2)
        told = self.run_podsim("sweep", "--store", part, "--format", "csv", "--query", "SELECT finished FROM sessions ORDER BY started_s")
        sessions = [int(line) for line in told.split()[1:]]
        self.assertEqual(len(sessions), 2)
        self.assertGreaterEqual(sessions[0], before)
        self.assertEqual(sum(sessions), POINTS // 2)
        self.assertGreater(sessions[1], 0)

    def test_a_computer_that_is_gone_has_its_shards_done_by_another(self):
        # What ssh does, on this computer: the words behind the host, and --, are a command of its shell, and SHELL is set, which parallel asks there.
        asked = self.folder / "asked"
        ssh = self.script("ssh", 'host=$1; shift\n[ "$1" != -- ] || shift\necho "$host" >> "$ASKED"\n[ "$host" != gone ] || exit 255\nSHELL=/bin/sh exec sh -c "$*"\n')
        launched = self.launched("elsewhere.sqlite", "--sshlogin", "1/gone,1/here", PARALLEL_SSH=ssh, ASKED=str(asked))
        self.expect_the_export_of_one_process(launched, "elsewhere.sqlite")
        self.assertIn("gone", asked.read_text().split())

    def test_a_shard_that_always_fails_is_named_and_the_rest_is_merged(self):
        failing = self.script("failing", f'[ "$4" != 1/2 ] || exit 1\nexec {PODSIM} "$@"\n')
        launched = self.launched("partly.sqlite", podsim=failing)
        _, err = launched.communicate(timeout=120)
        self.assertEqual(launched.returncode, 1, err)
        self.assertIn("podsim: 12 of 24 points remain in partly.sqlite\n  in no part: shard 1/2\n", err)
        self.assertEqual(self.stored("partly.sqlite"), POINTS // 2)
        # The same command goes on: the second shard is there already.
        self.expect_the_export_of_one_process(self.launched("partly.sqlite"), "partly.sqlite")

    def test_names_may_hold_what_parallel_replaces(self):
        folder = self.folder / "in {} and {#}"
        folder.mkdir()
        names = ["a{}b.textproto", "of {2}{.}.sqlite"]
        (folder / names[0]).write_text(SWEEP)
        done = subprocess.run([LAUNCH / "parallel_sweep.sh", *names, "2"], cwd=folder, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "PODSIM": PODSIM})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(file.name for file in folder.glob("*.sqlite")), ["of {2}{.}-1-of-2.sqlite", "of {2}{.}-2-of-2.sqlite", "of {2}{.}.sqlite"])
        self.assertEqual(self.stored(folder / names[1]), POINTS)

    def test_where_no_shard_was_begun_it_says_so(self):
        launched = self.launched("nothing.sqlite", podsim="/bin/false")
        _, err = launched.communicate(timeout=120)
        self.assertEqual(launched.returncode, 1, err)
        self.assertIn("parallel_sweep.sh: error: no shard has left a store (nothing-1-of-2.sqlite, …): what failed is said above\n", err)

    def test_it_says_how_it_is_used(self):
        for words in ([], ["a", "b"], ["a", "b", "0"], ["a", "b", "two"]):
            for script in ("parallel_sweep.sh", "slurm_sweep.sh"):
                done = subprocess.run([LAUNCH / script, *words], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f"{script}: error: expected SWEEP.textproto STORE.sqlite SHARDS", done.stderr)


if __name__ == "__main__":
    if shutil.which("parallel") is None:
        print("test_parallel.py: skipped: there is no parallel (Debian package parallel); parallel_sweep.sh was not tested")
        sys.exit(SKIPPED)
    unittest.main()
