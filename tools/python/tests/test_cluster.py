"""Sweeps and searches that a cluster of Dask shares are those of one process, whatever is lost on the way."""

import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
import unittest

import podsim

try:
    from dask.distributed import Client, LocalCluster
except ImportError:
    Client = None

SPEC = {
    "machine": ["tpu_v4", "tpu_v5p"],
    "set": {"link.bandwidth": [None, "40 GB/s", "80 GB/s", "120 GB/s", "160 GB/s"]},
    "slice": ["4x4", "4x8", "8x8", "2x4"],
    "collective": ["all-gather", "all-reduce"],
    "bytes": [f"{4**k}KiB" for k in range(10)],
    "axis": "row",
    "algorithm": "ring",
}
POINTS = 2 * 5 * 4 * 2 * 10  # 800
KILLS = int(os.environ.get("PODSIM_TEST_KILLS", "2"))  # 20 for a thorough run


def cluster(workers):
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50, memory_limit=0)


@unittest.skipIf(Client is None, "python3-distributed is not installed: nothing of clusters was tested")
class SharedByACluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        began = time.monotonic()
        cls.alone = podsim.sweep(SPEC, store=cls.path("alone.sqlite"), threads=1)
        cls.seconds = time.monotonic() - began
        cls.expected = cls.alone.export("csv")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def same_as_alone(self, store):
        self.assertEqual(store.counts["points"], POINTS)
        self.assertEqual(store.export("csv"), self.expected)
        self.assertEqual(store.export("json"), self.alone.export("json"))
        (stored,) = store.query("SELECT count(*) AS points, count(DISTINCT point) AS distinct_points FROM results WHERE status != 'remaining'")
        self.assertEqual(stored, {"points": POINTS, "distinct_points": POINTS})

    def test_workers_that_are_killed_lose_no_point_and_store_none_twice(self):
        chance = random.Random(20)
        for kill in range(KILLS):
            # A cluster of its own each: a nanny may fail to start a killed worker again.
            with cluster(3) as local, Client(local) as client:
                podsim.sweep({**SPEC, "bytes": "1KiB"}, store=self.path(f"warm{kill}.sqlite"), client=client)  # workers have imported podsim
                pids = list(client.run(os.getpid).values())
                self.assertEqual(len(pids), 3)
                timer = threading.Timer(chance.uniform(0, self.seconds), os.kill, (chance.choice(pids), signal.SIGKILL))
                timer.start()
                self.same_as_alone(podsim.sweep(SPEC, store=self.path(f"killed{kill}.sqlite"), client=client, batch_seconds=0.1))
                timer.join()

    def test_without_its_scheduler_a_sweep_leaves_a_whole_store_and_goes_on(self):
        path = self.path("orphan.sqlite")
        with cluster(1) as local:
            client = Client(local)
            stopping = threading.Event()

            def end_after_some(_):
                if not stopping.is_set():
                    stopping.set()
                    threading.Thread(target=local.close).start()
                    while client.status == "running":
                        time.sleep(0.01)

            with self.assertRaises(podsim.HostError) as raised:
                podsim.sweep(SPEC, store=path, client=client, batch_seconds=0.01, progress=end_after_some)
            with contextlib.suppress(TimeoutError):  # a client without its scheduler closes when it likes
                client.close(timeout=1)
        store = raised.exception.result
        status = store.status()
        self.assertGreater(status["remaining"], 0)
        again = podsim.sweep(SPEC, store=path, threads=1)
        self.assertGreater(again.counts["known"], 0)
        self.same_as_alone(again)

    def test_a_callback_that_raises_ends_the_sweep_with_a_whole_store(self):
        path = self.path("raised.sqlite")
        with cluster(1) as local, Client(local) as client:

            def fail(_):
                raise LookupError("mine")

            with self.assertRaisesRegex(LookupError, "mine"):
                podsim.sweep(SPEC, store=path, client=client, batch_seconds=0.05, progress=fail)
            self.same_as_alone(podsim.sweep(SPEC, store=path, client=client))

    def test_a_shared_search_finds_the_same(self):
        search = {"machine": "tpu_v4", "chips": 64, "workload": "gpt3-block", "threads": 1}
        with cluster(2) as local, Client(local) as client:
            for how in ({"exhaustive": True}, {}):
                alone, shared = podsim.tune(**search, **how).to_dict(), podsim.tune(**search, **how, client=client).to_dict()
                del alone["wall_s"], shared["wall_s"]
                self.assertEqual(alone, shared)

    def test_what_a_worker_refuses_is_the_callers_error(self):
        with cluster(1) as local, Client(local) as client:
            with self.assertRaisesRegex(podsim.InputError, "tpu_v9"):
                podsim.tune("tpu_v9", chips=64, workload="gpt3-block", client=client)
            with self.assertRaisesRegex(podsim.InputError, "tpu_v9"):
                podsim.sweep({**SPEC, "machine": "tpu_v9"}, store=self.path("never.sqlite"), client=client)


if __name__ == "__main__":
    if Client is None:
        print("skipped: python3-distributed is not installed")
        sys.exit(77)  # CTest's SKIP_RETURN_CODE
    unittest.main()
