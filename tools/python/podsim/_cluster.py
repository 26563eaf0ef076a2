"""Work dealt out to the workers of a dask.distributed cluster."""

from __future__ import annotations

import collections
from typing import Any, Callable, Dict, Mapping, Optional

from . import _core
from ._errors import HostError, Interrupted
from ._words import shown


def _tune_share(keywords: Mapping[str, Any], share: int, shares: int) -> _core.SimulatedParts:
    """On a worker: what a share of a search simulates."""
    from ._api import _call

    return _call(("tune",), {**keywords, "threads": keywords.get("threads") or 1}, None, share=(share, shares))[3].simulated()


def check_client(client: Any) -> None:
    """Raises TypeError for what is no client of a cluster."""
    if not (client is None or (hasattr(client, "submit") and hasattr(client, "scheduler_info"))):
        raise TypeError(f"client takes a dask.distributed.Client, found {shown(client)}")


def workers_of(client: Any) -> int:
    return max(1, len(client.scheduler_info()["workers"]))


def simulated_by(client: Any, keywords: Mapping[str, Any]) -> _core.SimulatedParts:
    """What the workers simulated of a search, each systems of its own. Shares are smaller than a worker, so that none waits long for the last; one whose worker is lost goes to
    another. Ctrl-C takes them back."""
    from dask.distributed import as_completed

    unshared: Dict[str, Any] = {name: value for name, value in keywords.items() if name not in ("output", "explain", "pareto", "baseline")}
    shares = 3 * workers_of(client)
    futures = [client.submit(_tune_share, unshared, share, shares, pure=False, retries=3) for share in range(shares)]
    together = _core.SimulatedParts()
    try:
        for future in as_completed(futures):
            together.add(future.result())
    except BaseException:
        client.cancel(futures)
        raise
    return together


MOST_TRIES = 3  # of a batch whose workers are lost again and again


def _run_batch(message: bytes) -> bytes:
    """On a worker: the results of a batch. A worker of several threads runs several batches."""
    return _core.run_batch(message, 1, False)[0]


def deal_out(client: Any, sweep: _core.Sweep, path: str, batch_seconds: float, progress: Optional[Callable[[str], Any]]) -> Dict[str, Any]:
    """Runs the points that a store lacks on the workers, each worker a batch ahead, and stores what comes back as it comes. Returns the counts."""
    from dask.distributed import as_completed

    from ._sweep import Store, failed_points

    pending: Dict[Any, Any] = {}  # future: positions
    tries: Dict[int, int] = collections.Counter()  # of a batch, by its first position
    lost = 0

    def submit(completed: Any, batches: int) -> None:
        for _ in range(batches):
            positions, message = sweep.next(sweep.points_in(batch_seconds))
            if not positions:
                return
            future = client.submit(_run_batch, message, pure=False, retries=MOST_TRIES)
            pending[future] = positions
            completed.add(future)

    def slots() -> int:
        """Two batches for each thread of a worker, so that none waits for this process."""
        return 2 * max(1, sum(worker["nthreads"] for worker in client.scheduler_info()["workers"].values()))

    try:
        completed = as_completed()
        submit(completed, slots())
        while pending:
            future = next(completed)
            positions = pending.pop(future)
            if future.status == "finished":
                sweep.add(future.result())
            elif client.status != "running":
                raise HostError("the scheduler is gone")
            else:
                tries[positions[0]] += 1
                error = future.exception() if future.status == "error" else None
                if error is not None and type(error).__name__ != "KilledWorker":
                    raise error
                if tries[positions[0]] < MOST_TRIES:
                    sweep.give_back(positions)
                else:
                    lost += len(positions)
            submit(completed, slots() - len(pending))
            if progress is not None:
                counts = sweep.counts()
                progress(f"{counts['known'] + counts['finished']} of {counts['points']} points")
    except BaseException as error:
        counts = sweep.counts()
        sweep.close()
        done = f"{counts['known'] + counts['finished']} of {counts['points']} points are done and stored in {path}; the same call goes on"
        if client.status != "running":
            gone = HostError(f"the cluster is gone ({error}); {done}")
            gone.result = Store(path, counts)  # type: ignore[attr-defined]
            raise gone from error
        client.cancel(list(pending))
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(done, result=Store(path, counts)) from None
        raise
    counts = sweep.counts()
    sweep.close()
    if lost:
        counts["failed"] += lost
        counts["failures"] = {**counts["failures"], "": f"{lost} were lost with their workers, {MOST_TRIES} times"}
    if counts["failed"]:
        raise failed_points(counts, path)
    return counts
