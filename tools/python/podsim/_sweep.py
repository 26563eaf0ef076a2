"""Sweeps: every combination of the values of a specification, simulated once and kept in a store."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _core
from ._api import Progress, _call
from ._cluster import check_client, deal_out
from ._errors import HostError, InputError, Interrupted
from ._objects import Machine, Plan, Schedule
from ._words import Option, _is_several, _texts, check_keywords, check_progress, name_or_path, options, shown, text_only

Spec = Union[str, os.PathLike, Mapping[str, Any], Sequence[Mapping[str, Any]]]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True) if text.isascii() else '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'


def _is_one(option: Option, value: tuple) -> bool:
    """Whether a tuple is one value of a field, of several parts, and not several values."""
    if option.name in ("axis", "devices") or (option.kind == "many" and option.form not in ("mesh", "name_or_file")):
        return True
    return len(value) > 0 and option.form in ("gemm", "extents") and not isinstance(value[0], (str, tuple, list))


def _value(option: Option, form: str, value: Any) -> str:
    """One value as a file has it."""
    wrong = TypeError(f"{option.name} takes {'a whole number' if form == 'number' else 'True or False' if form == 'flag' else option.value}, found {shown(value)}")
    if form == "flag":
        if not isinstance(value, bool):
            raise wrong
        return "true" if value else "false"
    if form == "number":
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise wrong
        return str(value.__index__())
    if value is None:
        return _quoted("")
    if isinstance(value, bool) and option.on_off:
        return _quoted("on" if value else "off")
    if isinstance(value, (Machine, Schedule, Plan)):
        if isinstance(value, Machine) and value == Machine(value._word):
            return _quoted(value._word)
        raise InputError("a sweep takes names and files, which other hosts have too; values of a machine stand in set", argument=option.name)
    try:
        return _quoted("; ".join(_texts(option, value)))
    except (TypeError, AttributeError):
        raise wrong from None


def _values(option: Option, form: str, value: Any) -> List[str]:
    """A list holds values; a tuple too, unless it is one value: gemm=(m, n, k), axis=("row", "col")."""
    if _is_several(value) and not (isinstance(value, tuple) and _is_one(option, value)):
        return [_value(option, form, entry) for entry in value]
    return [_value(option, form, value)]


def _block(fields: Mapping[str, Any], indent: str) -> str:
    known = {keyword.removesuffix("_"): option for keyword, option in options("run").items()}  # fields of files: pass
    check_keywords("sweep", [*known, "case"], fields)
    lines = []
    for name, value in fields.items():
        if name == "case":
            lines += [f"{indent}case {{\n{_block(case, indent + '  ')}{indent}}}" for case in value]
        elif name == "set":
            for path, values in value.items():
                texts = values if isinstance(values, (list, tuple)) else [values]
                lines.append(f"{indent}set {{ path: {_quoted(path)} value: [{', '.join(_quoted('' if text is None else str(text)) for text in texts)}] }}")
        else:
            lines.append(f"{indent}{name}: [{', '.join(_values(known[name], _core.form_in_sweep(name), value))}]")
    return "".join(line + "\n" for line in lines)


def sweep_text(spec: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]) -> str:
    """The file of a sweep, from a dict of fields with their values, or several, one behind the other.

    >>> podsim.sweep_text({"machine": ["tpu_v4", "tpu_v5p"], "slice": "4x4x4", "mesh": "all", "gemm": (65536, 16384, 16384), "algorithm": ["collective", "meshslice"],
    ...                    "set": {"link.bandwidth": [None, "45 GB/s"]}})

    A list holds values. ``gemm=(m, n, k)``, ``axis=("row", "col")`` and tuples of fields that take several at once, such as ``fail``, are one value. None leaves a field
    out. ``case`` is a list of dicts that change together.
    """
    blocks = [spec] if isinstance(spec, Mapping) else list(spec)
    return "format_version: 1\n" + "".join(f"sweep {{\n{_block(block, '  ')}}}\n" for block in blocks)


class Store:
    """The results of sweeps: a SQLite file (tools/sweep/README.md). ``counts`` is of the call that made it, if one did."""

    def __init__(self, path: Union[str, os.PathLike], counts: Optional[Dict[str, Any]] = None):
        self.path = name_or_path(path, "store")
        self.counts = counts or {}

    def export(self, format: str = "csv") -> str:
        """Every point that is done or skipped, in order, as csv or json: equal bytes, however it was run."""
        return _call(("sweep",), {"store": self.path, "export": format})[1]

    def rows(self) -> List[Dict[str, Any]]:
        """The same as dicts."""
        return json.loads(self.export("json"))["rows"]

    def query(self, sql: str) -> List[Dict[str, Any]]:
        """The rows of one statement that only reads; ``results`` is the view to begin with."""
        return json.loads(_call(("sweep",), {"store": self.path, "query": text_only(sql, "query")}, None, "json")[1])["rows"]

    def status(self) -> Dict[str, Any]:
        """How far the sweep is, also while another process runs it."""
        return json.loads(_call(("sweep",), {"store": self.path, "status": True}, None, "json")[1])

    def df(self) -> Any:
        """A pandas DataFrame with a row per point."""
        import pandas

        return pandas.DataFrame(self.rows())

    def __repr__(self) -> str:
        return f"<podsim.Store {self.path!r}{': ' + str(self.counts['points']) + ' points' if self.counts else ''}>"


def _text_and_file(spec: Spec, store: Any) -> tuple:
    if isinstance(spec, (str, os.PathLike)):
        file = name_or_path(spec, "spec")
        try:
            with open(file, "rb") as opened:
                text = opened.read()
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read: {getattr(error, 'strerror', error)}", file=file) from None
        return text, file, name_or_path(store, "store") if store is not None else os.path.splitext(file)[0] + ".sqlite"
    if not isinstance(spec, (Mapping, list, tuple)):
        raise TypeError(f"expected the file of a sweep, a dict of fields or a list of dicts, found {shown(spec)}")
    if store is None:
        raise InputError("is missing: the file that keeps the results", argument="store")
    return sweep_text(spec).encode(), "a sweep in memory", name_or_path(store, "store")


def sweep(spec: Spec, *, store: Union[str, os.PathLike, None] = None, threads: int = 0, shard: Optional[str] = None, client: Any = None,
          batch_seconds: float = 1.0, progress: Progress = None) -> Store:
    """Simulate every combination of a specification's values, each once, and keep the results in a store.

    ``spec``: a file (tools/sweep/README.md), or its fields as a dict (``sweep_text()``). ``store``: the SQLite file; left out: beside the specification's. What it knows
    is not run again, so a sweep that was interrupted goes on. ``threads``: of this process; 0: all cores. ``shard="3/8"``: the third of eight parts, which ``merge()``
    puts together. ``client``: a dask.distributed.Client, whose workers run batches of about ``batch_seconds``; what a lost worker had goes to others, and this process
    alone writes. What is stored is the same in all these ways, but for the times that runs took.

    Raises Interrupted after Ctrl-C, and HostError where points could not be run or the cluster is gone: ``result`` of both is the store, which is whole, and the same call
    goes on.
    """
    check_progress(progress)
    check_client(client)
    if not (shard is None or isinstance(shard, str)):
        raise TypeError(f'shard takes a text, "3/8", found {shown(shard)}')
    if not hasattr(threads, "__index__"):
        raise TypeError(f"threads takes a whole number, found {shown(threads)}")
    if not 0 <= threads <= 1024:
        raise InputError(f"expected a whole number from 0 to 1024, found {shown(threads)}", argument="threads")
    text, file, path = _text_and_file(spec, store)
    if shard == "":
        raise InputError('expected I/N, such as 3/8, found ""', argument="shard")
    if client is not None:
        if shard is not None:
            raise InputError("belongs to sweeps without client, which deals out all points", argument="shard")
        return Store(path, deal_out(client, _core.Sweep(text, file, path), path, batch_seconds, progress))
    on_main = threading.current_thread() is threading.main_thread()
    counts, stopped = _core.run_sweep(text, file, path, shard or "", threads, progress, on_main)
    if stopped:
        raise Interrupted(f"{counts['known'] + counts['finished']} of {counts['points']} points are done and stored in {path}; the same call goes on",
                          result=Store(path, counts))
    if counts["failed"]:
        raise failed_points(counts, path)
    return Store(path, counts)


def failed_points(counts: Mapping[str, Any], path: str) -> HostError:
    first = "; ".join(f"point {point}: {why}" for point, why in counts["failures"].items())
    error = HostError(f"{counts['failed']} of {counts['points']} points could not be run; the same call tries them again: {first}")
    error.result = Store(path, dict(counts))  # type: ignore[attr-defined]
    return error


def merge(parts: Sequence[Union[str, os.PathLike]], *, store: Union[str, os.PathLike]) -> Store:
    """Put the stores of shards together, as one computer would have filled it. Parts may be merged again when they have more; what ``store`` has stays.

    ``counts`` of the result: ``points`` of the whole sweep, and ``remaining``, which no part has an outcome of. Raises InputError, with the names of the files, where parts
    are no stores, of different sweeps or versions, or disagree.
    """
    if not isinstance(parts, (list, tuple)):
        raise TypeError(f"parts takes a list of files, found {shown(parts)}")
    if not parts:
        raise InputError("expected the stores of shards, found none", argument="parts")
    merged = Store(store)
    status = json.loads(_call(("sweep",), {"merge": [name_or_path(part, "parts") for part in parts], "store": merged.path}, None, "json")[1])
    merged.counts = {"points": status["sweep_points"], "remaining": status["sweep_points"] - status["done"] - status["skipped"]}
    return merged
