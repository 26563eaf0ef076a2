"""Threads beside each other, Ctrl-C, memory that stays flat, views of timelines, pickles."""

import concurrent.futures
import gc
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import podsim

PRODUCT = {"slice": (4, 4), "gemm": (4096, 4096, 4096), "algorithm": "meshslice", "slice_count": 4}
# 17 million task instances: some seconds, if nobody ends it.
LONG = {"machine": "tpu_v4", "slice": (64, 64), "gemm": (524288, 65536, 65536), "algorithm": "meshslice", "slice_count": 16, "fold": "off", "force": True}


def told(result):
    """The JSON of a result, without the times that it took."""
    return re.sub(r'"(wall_s|build_s)": [^,}\n]*', "", result.json())


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Threads(unittest.TestCase):
    def test_eight_at_once_have_the_bits_of_each_alone(self):
        machine = podsim.machine("tpu_v4", {"link.bandwidth": "45GB/s"})
        work = [
            lambda: podsim.run(machine, **PRODUCT),
            lambda: podsim.run(machine, **PRODUCT, fold="off", explain=True),
            lambda: podsim.check(mesh={"row": 4, "col": 2}, gemm=(512, 1024, 256), algorithm="meshslice", slice_count=2),
            lambda: podsim.compare(machine, slice=(4, 4), gemm=(4096, 4096, 4096), slice_count=[1, 2, 4]),
            lambda: podsim.tune(machine, slice=(4, 4), gemm=(4096, 4096, 4096)),
            lambda: podsim.run(machine, slice=(4, 4), collective="all-to-all", axis=("row", "col"), bytes="1MiB"),
            lambda: podsim.show_topology(machine, slice=(4, 4, 4)),
            lambda: podsim.show_program(mesh={"x": 4, "y": 2}, program="C = A @ B", shape={"A": (48, 24), "B": (24, 96)}, shard={"A": ("x", "y")}),
        ]
        alone = [told(each()) for each in work]
        starts = podsim.run(machine, **PRODUCT, fold="off").timeline().start_ps.copy()
        together = threading.Barrier(8)

        def rotated(thread):
            together.wait()
            found = {}
            for turn in range(8):
                which = (thread + turn) % 8
                found[which] = told(work[which]())
            found["starts"] = podsim.run(machine, **PRODUCT, fold="off").timeline().start_ps
            return found

        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            for found in threads.map(rotated, range(8)):
                self.assertEqual([found[which] for which in range(8)], alone)
                self.assertTrue((found["starts"] == starts).all())

    def test_errors_stay_with_their_thread(self):
        def run(bandwidth):
            try:
                return podsim.run("tpu_v4", **PRODUCT, set={"link.bandwidth": bandwidth}).makespan_s
            except podsim.InputError as error:
                return error.message

        values = ["45GB/s", "45", "90GB/s", "90", "45 kg", "45GB/s", "-1GB/s", "120GB/s"] * 8
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            self.assertEqual(list(threads.map(run, values)), [run(value) for value in values])

    def test_others_go_on_while_one_simulates(self):
        """Without the interpreter's lock another thread is never kept from counting for long."""
        done = threading.Event()
        counts = []

        def count():
            while not done.is_set():
                counts.append(time.monotonic())
                time.sleep(0.001)

        counting = threading.Thread(target=count)
        counting.start()
        began = time.monotonic()
        run = podsim.run(**{**LONG, "slice_count": 4})
        ended = time.monotonic()
        done.set()
        counting.join()
        self.assertGreater(run.tasks, 1_000_000)
        during = [moment for moment in counts if began < moment < ended]
        parts, _ = np.histogram(during, bins=4, range=(began, ended))
        self.assertTrue((parts > 0).all(), f"in a quarter of the run no other thread could work: {parts}")

    def test_a_run_of_a_thread_that_is_not_waited_for(self):
        """The interpreter ends while a thread simulates: no crash."""
        code = f"import podsim, threading\nthreading.Thread(target=lambda: podsim.run(**{LONG!r}), daemon=True).start()\nthreading.Event().wait(0.5)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode, 0)


class CtrlC(unittest.TestCase):
    def child(self, body, *, after=r"begun\n", signals=(signal.SIGINT,)):
        """What a Python prints that gets signals a moment after it has said that it begins."""
        process = subprocess.Popen([sys.executable, "-c", "import podsim, signal\n" + body], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with process:
            self.assertEqual(process.stdout.readline(), "begun\n")
            time.sleep(0.3)
            for each in signals:
                process.send_signal(each)
                time.sleep(0.2)
            try:
                told, _ = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, told

    def test_a_run_ends_with_what_is_known(self):
        status, told = self.child(
            f"""
begun = []
def tell(progress):  # before it simulates, nothing is known
    if ("simulating" in progress or "task instances" in progress) and not begun:
        begun.append(print("begun", flush=True))
try:
    podsim.run(**{dict(LONG, slice_count=64)!r}, progress=tell)
except podsim.Interrupted as interrupted:
    known = interrupted.result
    print(isinstance(interrupted, KeyboardInterrupt), 0 <= known.finished < known.activities, known.activities > 50_000_000, known.simulated_s >= 0, known)
print(podsim.run("tpu_v4", slice=(2, 2), collective="all-gather", axis="row", bytes=1024).makespan_s > 0)
"""
        )
        self.assertEqual(status, 0, told)
        self.assertRegex(told, r"^True True True True <podsim.InterruptedRun: .* s simulated, \d+ of \d+ task instances>\nTrue\n$")

    def test_a_comparison_ranks_the_rows_that_are_done(self):
        status, told = self.child(
            f"""
print("begun", flush=True)
try:
    podsim.compare(**{ {name: value for name, value in LONG.items() if name != "slice_count"}!r}, slice_count=[1, 2, 4, 8, 16, 32, 64])
except podsim.Interrupted as interrupted:
    print(0 <= len(interrupted.result.rows) < 7)
"""
        )
        self.assertEqual((status, told), (0, "True\n"))

    def test_a_search_has_the_best_so_far_or_says_that_there_is_none(self):
        status, told = self.child(
            """
print("begun", flush=True)
try:
    podsim.tune("tpu_v4", chips=256, workload="gpt3-block", exhaustive=True, threads=1)
except podsim.Interrupted as interrupted:
    print(interrupted if interrupted.result is None else f"{len(interrupted.result.plans)} plans, the best takes {interrupted.result.best.predicted_s}")
"""
        )
        self.assertEqual(status, 0, told)
        self.assertRegex(told, r"^(interrupted before the first plan was known: \d+ parts simulated|[1-9]\d* plans, the best takes 0\.\d+)\n$")

    def test_uncaught_it_ends_the_program(self):
        status, told = self.child(f'print("begun", flush=True)\npodsim.run(**{dict(LONG, slice_count=64)!r})')
        self.assertEqual(status, 1, told)
        self.assertTrue(told.endswith("podsim.Interrupted: interrupted\n"), told)

    def test_a_program_with_handlers_of_its_own_keeps_them(self):
        status, told = self.child(
            f"""
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append("USR1"))
signal.signal(signal.SIGINT, lambda *_: heard.append("INT"))
print("begun", flush=True)
while len(heard) < 2:  # a fast computer ends a run before it hears the second
    run = podsim.run(**{dict(LONG, slice_count=32)!r})
print(heard, run.makespan_s > 0)
""",
            signals=(signal.SIGUSR1, signal.SIGINT),
        )
        self.assertEqual((status, told), (0, "['USR1', 'INT'] True\n"))

    def test_a_handler_that_raises_ends_the_run(self):
        status, told = self.child(
            f"""
def handler(*_):
    raise LookupError("mine")
signal.signal(signal.SIGTERM, handler)
print("begun", flush=True)
try:
    podsim.run(**{dict(LONG, slice_count=64)!r})
except LookupError as error:
    print(error, podsim.run("tpu_v4", slice=(2, 2), collective="all-gather", axis="row", bytes=1024).makespan_s > 0)
""",
            signals=(signal.SIGTERM,),
        )
        self.assertEqual((status, told), (0, "mine True\n"))


class Leaks(unittest.TestCase):
    """Memory after many calls is that after a few. What is counted is resident memory of the process, and Python's objects."""

    def flat(self, call, calls, allowed_bytes):
        for _ in range(max(50, calls // 10)):  # until the allocators have what they keep
            call()
        gc.collect()
        objects, resident = len(gc.get_objects()), resident_bytes()
        for _ in range(calls):
            call()
        gc.collect()
        self.assertLess(len(gc.get_objects()) - objects, 100, "objects of Python are left behind")
        self.assertLess(resident_bytes() - resident, allowed_bytes, f"after {calls} calls")

    def test_10_000_calls(self):
        machine = podsim.machine("tpu_v4", {"link.bandwidth": "45GB/s"})
        small = {"slice": (2, 2), "collective": "all-gather", "axis": "row", "bytes": 1024}
        count = [0]

        def call():
            run = podsim.run(machine, **small, seed=count[0] % 7)
            count[0] += 1
            return run.makespan_s

        self.flat(call, 10_000, 4 << 20)

    def test_results_that_are_looked_at(self):
        def call():
            run = podsim.run("tpu_v4", **PRODUCT, fold="off")
            timeline = run.timeline()
            return run.to_dict(), run.table(), timeline.to_numpy(), timeline.labels, run.device_order(), pickle.loads(pickle.dumps(run))

        self.flat(call, 300, 8 << 20)

    def test_errors(self):
        def call():
            for keywords in ({"machine": "tpu_v9"}, {"machine": "tpu_v4", "slice": (3, 3, 3, 3, 3)}, {"machine": "tpu_v4", "no": 1}, {"machine": b"x"}):
                try:
                    podsim.run(**keywords)
                except (podsim.InputError, TypeError):
                    pass

        self.flat(call, 1_000, 4 << 20)

    def test_objects(self):
        schedule = podsim.schedule("tpu_v4", **PRODUCT)

        def call():
            machine = podsim.machine("tpu_v4", {"link.bandwidth": "45GB/s"})
            return (
                pickle.loads(pickle.dumps(machine)),
                pickle.loads(pickle.dumps(schedule)),
                machine == machine.with_values({"link.latency": "1us"}),
                str(schedule),
            )

        self.flat(call, 300, 8 << 20)

    def test_references_to_arguments_are_given_back(self):
        machine, schedule = podsim.machine("tpu_v4"), podsim.schedule("tpu_v4", **{**PRODUCT, "gemm": (256, 256, 256), "slice_count": 2})
        text, sizes, progress = "4x4" + "", [4096, 4096, 4096], lambda _: None
        held = (machine, machine._base, machine._changed, schedule, schedule._core, text, sizes, progress, None)
        before = [sys.getrefcount(each) for each in held[:-1]]
        for _ in range(20):
            podsim.run(machine, slice=text, gemm=sizes, algorithm="collective", progress=progress)
            podsim.run(schedule, machine=machine, slice=text)
            podsim.check(schedule, progress=progress)
        gc.collect()
        self.assertEqual([sys.getrefcount(each) for each in held[:-1]], before)

    def test_timelines_are_freed(self):
        run = podsim.run(**{**LONG, "slice_count": 4})
        before, bytes_of_times = resident_bytes(), run.timeline().start_ps.nbytes
        self.assertGreater(bytes_of_times, 16 << 20)
        del run
        gc.collect()
        self.assertGreater(before - resident_bytes(), bytes_of_times)


class Views(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = podsim.run("tpu_v4", **PRODUCT, fold="off")

    def test_times_are_views_and_not_copies(self):
        timeline = self.run_.timeline()
        for name in ("start_ps", "sent_ps"):
            first, second = getattr(timeline, name), getattr(self.run_.timeline(), name)
            self.assertFalse(first.flags.owndata)
            self.assertIsNotNone(first.base)
            self.assertEqual(first.__array_interface__["data"][0], second.__array_interface__["data"][0])
            self.assertEqual((first.dtype, first.ndim, len(first)), (np.dtype(np.int64), 1, len(timeline)))

    def test_views_cannot_be_written(self):
        view = self.run_.timeline().start_ps
        with self.assertRaisesRegex(ValueError, "read-only"):
            view[0] = 1
        with self.assertRaises(ValueError):
            view.setflags(write=True)
        self.assertFalse(view[10:20].flags.writeable)

    def test_views_keep_their_memory(self):
        run = podsim.run("tpu_v4", **PRODUCT, fold="off")
        view, copy = run.timeline().sent_ps, run.timeline().sent_ps.copy()
        part = view[5:]
        del run, view
        gc.collect()
        others = [podsim.run("tpu_v4", **PRODUCT, fold="off", seed=seed) for seed in range(5)]  # memory that was free would have other values by now
        others.clear()
        self.assertTrue((part == copy[5:]).all())

    def test_structured_copies_are_their_columns(self):
        timeline = self.run_.timeline()
        table = timeline.to_numpy()
        self.assertTrue(table.flags.owndata and table.flags.writeable)
        for name in table.dtype.names:
            self.assertTrue((table[name] == getattr(timeline, name)).all(), name)
        self.assertEqual(table["end_ps"].max(), timeline.makespan_ps)
        self.assertAlmostEqual(timeline.makespan_ps * 1e-12, self.run_.makespan_s, delta=1e-12)
        self.assertTrue((table["start_ps"] <= table["sent_ps"]).all() and (table["sent_ps"] <= table["end_ps"]).all())
        self.assertEqual(set(np.unique(table["device"])), set(range(16)))
        self.assertLess(table["task"].max(), len(timeline.labels))

    def test_every_kind_of_run_has_a_timeline(self):
        product = {"machine": "tpu_v4", "slice": (4, 4), "gemm": (4096, 4096, 4096), "algorithm": "collective"}
        reduce = {"machine": "tpu_v4", "collective": "all-reduce", "bytes": "1MiB"}
        for keywords in (
            {**product, "engine": "simgrid"},
            {**product, "engine": "analytic"},
            {**reduce, "slice": (2, 4), "devices": [0, 2, 4, 6], "mesh": {"x": 2, "y": 2}},
            {**reduce, "slice": (4, 4), "axis": "row", "pods": 2},
            {**reduce, "slice": (4, 4), "axis": "row", "fail": "any"},
            {"machine": "dgx_h100", "slice": (4, 8), "collective": "all-reduce", "axis": "col", "bytes": "1MiB", "algorithm": "in-switch"},
            {"machine": "tpu_v3", "slice": (2, 2), "mesh": {"p": 8}, "program": "C = A @ B", "shape": {"A": (64, 64), "B": (64, 64)}},
            {"machine": "tpu_v4", "slice": (4, 4, 4), "mesh": {"row": 16, "col": 4}, "workload": "gpt3-block", "algorithm": "wang"},
            {"machine": "tpu_v5p", "slice": (2, 2, 1), "mesh": {"fsdp": 4}, "training": "llama3-8b", "pad": True, "batch": 4, "remat": "full", "force": True},
        ):
            with self.subTest(**keywords):
                run = podsim.run(**keywords)
                timeline = run.timeline()
                table = timeline.to_numpy()
                self.assertGreater(len(table), 0)
                self.assertEqual(table["end_ps"].max(), timeline.makespan_ps)
                self.assertLess(table["task"].max(), len(timeline.labels))
                self.assertLess(table["device"].max(), run.devices)
                self.assertLess(table["unit"].max(), len(podsim.UNITS))

    def test_unfolded_and_folded_agree(self):
        folded = podsim.run("tpu_v4", **PRODUCT).timeline()
        whole = self.run_.timeline()
        self.assertLess(len(folded), len(whole))
        for device in range(16):
            stands_for = folded.alike[device]
            self.assertEqual(sorted(folded.end_ps[folded.device == stands_for]), sorted(whole.end_ps[whole.device == device]))


class Pickles(unittest.TestCase):
    def again(self, value):
        return pickle.loads(pickle.dumps(value))

    def test_machines_schedules_and_plans_are_equal(self):
        machine = podsim.machine("tpu_v4", {"link.bandwidth": "45GB/s"})
        schedule = podsim.schedule(machine, **PRODUCT)
        plan = podsim.tune(machine, slice=(4, 4), gemm=(4096, 4096, 4096)).best.plan
        for value in (machine, schedule, plan, podsim.Machine.from_text(machine.text())):
            again = self.again(value)
            self.assertEqual(again, value)
            self.assertEqual(again.text(), value.text())
        self.assertEqual(told(podsim.run(self.again(machine), **PRODUCT)), told(podsim.run(machine, **PRODUCT)))
        self.assertEqual(told(podsim.run(self.again(schedule), machine=machine, slice=(4, 4))), told(podsim.run(schedule, machine=machine, slice=(4, 4))))
        self.assertEqual(told(podsim.run(self.again(plan))), told(podsim.run(plan)))

    def test_results_keep_their_figures_and_their_table(self):
        results = [
            podsim.run("tpu_v4", **PRODUCT),
            podsim.compare("tpu_v4", slice=(4, 4), gemm=(4096, 4096, 4096), slice_count=[1, 2]),
            podsim.tune("tpu_v4", slice=(4, 4), gemm=(4096, 4096, 4096)),
            podsim.check(mesh={"row": 4, "col": 2}, gemm=(512, 1024, 256), algorithm="collective"),
            podsim.show_topology("tpu_v4", slice=(4, 4)),
        ]
        for result in results:
            with self.subTest(type(result).__name__):
                again = self.again(self.again(result))
                self.assertIs(type(again), type(result))
                self.assertEqual(again, result)
                self.assertEqual((again.json(), again.table()), (result.json(), result.table()))
        run, comparison, tuning, check, _ = map(self.again, results)
        self.assertEqual(run.makespan_s, results[0].makespan_s)
        self.assertEqual(comparison.best, results[1].best)
        self.assertEqual(tuning.best.predicted_s, results[2].best.predicted_s)
        self.assertTrue(check)

    def test_another_process_reads_them(self):
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=__import__("multiprocessing").get_context("spawn")) as process:
            machine = podsim.machine("tpu_v4", {"link.bandwidth": "45GB/s"})
            self.assertEqual(told(process.submit(podsim.run, machine, **PRODUCT).result()), told(podsim.run(machine, **PRODUCT)))
            with self.assertRaises(podsim.InputError) as raised:
                process.submit(podsim.run, machine, slice="nonsense").result()
            self.assertEqual(raised.exception.argument, "slice")

    def test_exceptions(self):
        for error in (
            podsim.InputError("m", file="f", line=1, column=2, argument=None),
            podsim.DataError("m"),
            podsim.HostError("m"),
            podsim.InternalError("m"),
            podsim.Interrupted("m", result=3),
        ):
            again = self.again(error)
            self.assertEqual((type(again), str(again)), (type(error), str(error)))
            self.assertEqual(again.__dict__.get("result"), error.__dict__.get("result"))


if __name__ == "__main__":
    unittest.main()
