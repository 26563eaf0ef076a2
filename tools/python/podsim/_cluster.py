"""Work dealt out to the workers of a dask.distributed cluster."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from . import _core


def _tune_share(keywords: Mapping[str, Any], share: int, shares: int) -> _core.SimulatedParts:
    """On a worker: what a share of a search simulates."""
    from ._api import _call

    return _call(("tune",), {**keywords, "threads": keywords.get("threads") or 1}, None, share=(share, shares))[3].simulated()


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
