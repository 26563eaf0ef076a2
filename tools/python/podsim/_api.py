"""The verbs: words of the command as keywords, results as values."""

from __future__ import annotations

import os
import tempfile
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import _core
from ._cluster import check_client, simulated_by
from ._errors import InputError, InternalError, Interrupted, from_diagnostics, in_python
from ._modules import with_module
from ._objects import Machine, Plan, Schedule
from ._results import Calibration, Check, Comparison, InterruptedRun, Result, Run, TrainingTuning, Tuning
from ._words import check_keywords, check_progress, function_of, options, shown, words_of

_DONE, _FALSE, _BAD_INPUT, _INTERNAL, _INTERRUPTED = 0, 1, 2, 3, 130  # podsim::ExitStatus

Progress = Optional[Callable[[str], Any]]


class _Known:
    """Objects that words may name."""

    def __init__(self) -> None:
        self.machines: Dict[str, _core.Machine] = {}
        self.schedules: Dict[str, _core.Schedule] = {}
        self.plans: Dict[str, _core.Plan] = {}

    @staticmethod
    def _name(objects: Dict[str, Any], word: str, entry: Any) -> str:
        """A word for an object: its own, unless another object has that."""
        name, again = word, 1
        while name in objects and objects[name] is not entry:
            again += 1
            name = f"{word} ({again})"
        objects[name] = entry
        return name

    def machine(self, machine: Machine) -> str:
        return self._name(self.machines, machine._word.replace(",", " "), machine._base)

    def changed_machine(self, machine: Machine) -> str:
        """Of several machines, whose values cannot stand in one ``set``."""
        if not machine._sets:
            return self.machine(machine)
        values = " ".join(f"{path}={value}" for path, value in machine._sets)
        return self._name(self.machines, f"{machine._word} {values}".replace(",", " "), machine._changed)

    def schedule(self, schedule: Schedule) -> str:
        return self._name(self.schedules, schedule.name.replace(",", " ") or "schedule", schedule._core)

    def plan(self, plan: Plan) -> str:
        if plan._machine is not None:
            self.machine(plan._machine)
        return self._name(self.plans, "plan", plan._core)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _words(command: Tuple[str, ...], keywords: Mapping[str, Any], known: _Known) -> List[str]:
    described = options(*command)
    check_keywords(function_of(command), described, keywords)
    words = list(command)
    sets: Any = keywords.get("set")
    for name, value in keywords.items():
        if name in ("machine", "base") and isinstance(value, Machine):
            if value._sets and "set" in described:
                words += [f"--set={path}={text}" for path, text in value._sets]  # before those of `set`, which come later and win
                value = known.machine(value)
            else:
                value = known.changed_machine(value)
        elif name == "machine" and _is_list(value):
            value = [known.changed_machine(entry) if isinstance(entry, Machine) else entry for entry in value]
        elif isinstance(value, Schedule):
            value = known.schedule(value)
        elif isinstance(value, Plan):
            value = known.plan(value)
        if name != "set":
            words += words_of(described[name], value)
    if sets is not None and "set" in described:
        words += words_of(described["set"], sets)
    return words


def _call(command: Tuple[str, ...], keywords: Mapping[str, Any], progress: Progress = None, format: str = "", **how: Any) -> Tuple[int, str, str, Any]:
    """status, text, messages, value. Raises what went wrong; what an interrupted command knows is left to the caller."""
    check_progress(progress)
    keywords = with_module(keywords)
    known = _Known()
    words = _words(command, {name: value for name, value in keywords.items() if value is not None}, known)
    # What is written is what the file's name says, a table else; report looks at the name itself.
    if not format and command != ("report",) and keywords.get("output") is not None:
        format = next((name for name in ("json", "csv") if str(keywords["output"]).endswith("." + name)), "")
    if format:
        words.append(f"--format={format}")
    on_main = threading.current_thread() is threading.main_thread()
    status, text, messages, errors, value = _core.call(words, known.machines, known.schedules, known.plans, progress, on_main, **how)
    if errors:
        raise from_diagnostics(errors)
    if status == _INTERNAL:
        raise InternalError(messages.strip())
    if status == _BAD_INPUT:
        raise InputError(in_python(messages.strip().removeprefix("podsim: error: ")))
    if status == _INTERRUPTED and value is None:
        raise Interrupted(messages.strip().removeprefix("podsim: ") or "interrupted")
    return status, text, messages, value


def _result(command: Tuple[str, ...], keywords: Mapping[str, Any], progress: Progress, kind: type = Result) -> Any:
    """Of a verb that answers in JSON."""
    status, text, _, table = _call(command, keywords, progress, "json")
    result = kind(text, ok=status == _DONE, table=lambda: table)
    if status == _INTERRUPTED:
        raise Interrupted(result=result)
    return result


# ---- The verbs --------------------------------------------------------------------------------------------------------------------------

_What = Union[Machine, Schedule, Plan, str, None]


def _with_subject(subject: _What, keywords: Dict[str, Any]) -> Dict[str, Any]:
    """The first argument: a machine, or what is to be run."""
    if subject is None:
        return keywords
    name = "schedule" if isinstance(subject, Schedule) else "plan" if isinstance(subject, Plan) else "machine"
    if name == "machine" and not isinstance(subject, (Machine, str, os.PathLike, list, tuple)):
        raise TypeError(f"expected a machine (its name, a file or a podsim.Machine), a schedule or a plan, found {shown(subject)}")
    if name in keywords:
        raise TypeError(f"{name} is given twice: as the first argument and as a keyword")
    return {name: subject, **keywords}


def machine(name_or_file: Union[str, os.PathLike], values: Optional[Mapping[str, Any]] = None) -> Machine:
    """A machine by its name or file, with other values: ``podsim.machine("tpu_v4", {"link.bandwidth": "45GB/s"})``. ``show_machine()`` lists names and values."""
    return Machine(name_or_file, values)


def run(subject: _What = None, /, *, progress: Progress = None, **keywords: Any) -> Run:
    """Simulate one thing: a GEMM, a collective, a program, a training step, a module, a saved schedule."""
    status, _, _, answer = _call(("run",), _with_subject(subject, keywords), progress)
    if status == _INTERRUPTED:
        raise Interrupted(result=InterruptedRun(answer))
    return Run(answer)


def check(subject: _What = None, /, *, progress: Progress = None, **keywords: Any) -> Check:
    """Execute it numerically and prove it right, free of races and deadlocks. The result is true if it is."""
    return _result(("check",), _with_subject(subject, keywords), progress, Check)


def compare(subject: _What = None, /, *, progress: Progress = None, **keywords: Any) -> Union[Comparison, Result]:
    """Simulate many variants and rank them. Keywords take lists: ``slice_count=[1, 2, 4]``, ``mesh=[{"row": 4, "col": 2}, ...]``, ``machine=[m, "tpu_v5p"]``."""
    keywords = _with_subject(subject, keywords)
    if keywords.get("hlo") is not None:
        return _result(("compare",), keywords, progress)
    status, _, _, answer = _call(("compare",), keywords, progress)
    comparison = Comparison(answer)
    if status == _INTERRUPTED:
        raise Interrupted(result=comparison)
    return comparison


def tune(subject: _What = None, /, *, progress: Progress = None, client: Any = None, **keywords: Any) -> Union[Tuning, TrainingTuning]:
    """Search the best mesh, dataflow, algorithm and slice count for a workload, or the best plan of a training step.

    ``client``, a dask.distributed.Client: its workers share the search, each a part of the slices and meshes; what is found is the same. Not of training steps.
    """
    check_client(client)
    keywords = _with_subject(subject, keywords)
    if keywords.get("training") is not None or keywords.get("maxtext") is not None:
        if client is not None:
            raise InputError("belongs to workload and gemm: searches of training steps run in one process", argument="client")
        return _result(("tune",), keywords, progress, TrainingTuning)
    how = {} if client is None else {"elsewhere": simulated_by(client, keywords)}
    status, _, _, answer = _call(("tune",), keywords, progress, **how)
    tuning = Tuning(answer)
    tuning._machine = keywords.get("machine") if isinstance(keywords.get("machine"), Machine) else None
    if status == _INTERRUPTED:
        raise Interrupted(result=tuning)
    return tuning


def calibrate(observations: Any = None, /, *, progress: Progress = None, **keywords: Any) -> Any:
    """Fit a machine to measurements: ``podsim.calibrate("all_reduce.txt", base="dgx_h100", slice="1x8").machine``. A Calibration; with ``observations_only`` these, as CSV."""
    if observations is not None:
        keywords["observations"] = observations
    status, text, _, found = _call(("calibrate",), keywords, progress, "json")
    if found is None:
        return text  # observations_only
    fitted, table = found
    result = Calibration(text, ok=status == _DONE, table=lambda: table)
    result._machine = Machine._of(fitted)
    return result


def validate(*datasets: str, progress: Progress = None, **keywords: Any) -> Result:
    """Predict what was measured and not fitted, and say how far off that is."""
    if datasets:
        keywords["dataset"] = list(datasets)
    return _result(("validate",), keywords, progress)


def diagnose(observations: Any = None, /, *, progress: Progress = None, **keywords: Any) -> Result:
    """What could be wrong with a machine whose collectives take too long: ``podsim.diagnose("all_reduce.txt", machine="dgx_h100", slice="8x8").hypotheses``, best first."""
    if observations is not None:
        keywords["observations"] = observations
    return _result(("diagnose",), keywords, progress)


def diff(*, progress: Progress = None, **keywords: Any) -> Result:
    """Hold a profile against a plan or a run: where is the step slower than predicted?"""
    return _result(("diff",), keywords, progress)


def report(records: Any = None, output: Union[str, os.PathLike, None] = None, /, *, progress: Progress = None, **keywords: Any) -> str:
    """Make one HTML file of a record, or of several: ``podsim.report(["a.record", "b.record"], "both.html")``. ``record="a.record"`` of other verbs writes them.

    Returns the path of the file, which loads nothing from anywhere.
    """
    for name, value in (("record", records), ("output", output)):
        if value is not None and keywords.setdefault(name, value) is not value:
            raise TypeError(f"{name} is given twice: as an argument and as a keyword")
    _call(("report",), keywords, progress)
    return os.fspath(keywords["output"])


def schedule(subject: _What = None, /, *, progress: Progress = None, **keywords: Any) -> Schedule:
    """The schedule that ``run`` with the same keywords plays; ``lowered=True``: with its collectives as transfers."""
    return Schedule._of(_call(("show", "schedule"), _with_subject(subject, keywords), progress)[3])


class SvgResult(Result):
    """A result with a drawing. Pickled it keeps what was asked, and draws again."""

    _asked: Any = None

    def __reduce__(self) -> Any:
        return (*super().__reduce__(), {"_asked": self._asked})

    def _repr_svg_(self) -> Optional[str]:
        return self.svg() or None

    def _repr_html_(self) -> str:  # notebooks prefer it to SVG
        return self.svg()

    def svg(self) -> str:
        """The drawing."""
        return self._written("drawing.svg")

    def _written(self, name: str) -> str:
        """What the command writes for the same keywords into a file of this name."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            _call(self._asked[0], {**self._asked[1], "output": path})
            with open(path, encoding="utf-8") as file:
                return file.read()


class GraphResult(SvgResult):
    """A result about chips and cables. ``svg()`` is empty where there are too many to be seen."""

    def svg(self) -> str:
        from ._topology_drawing import topology_svg

        if self._asked[1].get("devices") is True:
            return ""
        return topology_svg(self._written("graph.dot"), f"{self.machine} {self.slice}")

    def _repr_html_(self) -> str:
        return self.svg() + Result._repr_html_(self)


_PICTURED = {"output", "chart", "colour"}  # what tells how a text or a picture is drawn, which JSON is not


def _show(target: str, keywords: Mapping[str, Any], kind: type = Result) -> Any:
    command = ("show", target)
    keywords = with_module(keywords)  # once: what is drawn later is of the same file
    if keywords.get("output") is not None:
        _call(command, keywords)  # writes what the file's name says
    told = {name: value for name, value in keywords.items() if name not in _PICTURED}
    _, text, _, _ = _call(command, told, format="json")
    drawn = {name: value for name, value in keywords.items() if name != "output"}
    result = kind(text, table=lambda: _call(command, drawn)[1])
    if issubclass(kind, SvgResult):
        result._asked = (command, drawn)
    return result


def show_machine(machine: Union[Machine, str, None] = None, **keywords: Any) -> Result:
    """A machine's values with their sources; without one, the shipped machines."""
    return _show("machine", _with_subject(machine, keywords))


def show_topology(machine: Union[Machine, str, None] = None, **keywords: Any) -> Result:
    """Links, diameter, bisection bandwidth of a slice; ``devices=True`` lists its devices as JAX does."""
    return _show("topology", _with_subject(machine, keywords), GraphResult)


def show_mesh(machine: Union[Machine, str, None] = None, **keywords: Any) -> Result:
    """Where the axes of a mesh lie, and how many hops its neighbours are apart."""
    return _show("mesh", _with_subject(machine, keywords), GraphResult)


def show_plan(plan: Union[Plan, str, None] = None, **keywords: Any) -> Result:
    """A plan's times and memory; ``jax=True``: the mesh, device order and PartitionSpecs that it is in JAX."""
    return _show("plan", {**keywords, **({"plan": plan} if plan is not None else {})})


def show_program(machine: Union[Machine, str, None] = None, **keywords: Any) -> Result:
    """The collectives of a sharded program."""
    return _show("program", _with_subject(machine, keywords))


def show_sharding(**keywords: Any) -> Result:
    """Which device holds which block: ``podsim.show_sharding(array=(16, 16), mesh={"x": 4, "y": 2}, spec="x,y")``."""
    return _show("sharding", keywords, SvgResult)


def show_training(training: Any = None, **keywords: Any) -> Result:
    """Training steps that are shipped, or one of them."""
    return _show("training", {**keywords, **({"training": training} if training is not None else {})})


def show_pipeline(**keywords: Any) -> Result:
    """A pipeline's schedule as a chart."""
    return _show("pipeline", keywords, SvgResult)


def show_hlo(hlo: Any = None, **keywords: Any) -> Result:
    """What a compiled module does: of a file, its text or bytes, a jax Lowered or Compiled."""
    return _show("hlo", {**keywords, **({"hlo": hlo} if hlo is not None else {})})


