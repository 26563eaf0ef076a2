"""podsim: a simulator of TPU and GPU mesh interconnects, and the schedules that run on them.

The words are those of the command ``podsim``: an option ``--slice-count 8`` is the keyword ``slice_count=8``. Results are values: attributes are the keys of the
command's JSON. ``podsim.help("run")`` lists what a verb takes.

    >>> import podsim
    >>> m = podsim.machine("tpu_v4", {"link.bandwidth": "45GB/s"})
    >>> r = podsim.run(m, slice="4x8x8", mesh={"row": 32, "col": 8}, gemm=(524288, 49152, 12288), algorithm="meshslice", slice_count=16)
    >>> r.makespan_s, r.mfu
"""

from __future__ import annotations

import sys as _sys

try:
    from . import _core
except ImportError as _error:  # built for another Python
    raise ImportError(f"podsim's extension cannot be loaded by Python {_sys.version.split()[0]} ({_sys.executable}): {_error}. It is built for the Python that CMake "
                      "found, Debian's /usr/bin/python3 where there is one") from _error

from ._api import (calibrate, check, compare, diagnose, diff, machine, report, run, schedule, show_hlo, show_machine, show_mesh, show_pipeline, show_plan, show_program,
                   show_sharding, show_topology, show_training, tune, validate)
from ._builder import Builder
from ._errors import DataError, HostError, InputError, InternalError, Interrupted
from ._execute import execute
from ._help import describe_verbs as _describe_verbs
from ._help import help
from ._objects import Machine, Plan, Schedule
from ._regions import block
from ._results import UNITS, Calibration, Check, Comparison, InterruptedRun, Result, Run, Timeline, TrainingTuning, TunedPlan, Tuning
from ._sweep import Store, merge, sweep, sweep_text

for _error in (DataError, HostError, InputError, InternalError, Interrupted):
    _error.__module__ = "podsim"  # as people know them

__version__ = _core.version
version_and_build = _core.version_and_build  # as `podsim --version` tells it
_describe_verbs(globals())

__all__ = ["UNITS", "Builder", "Calibration", "Check", "Comparison", "DataError", "HostError", "InputError", "InternalError", "Interrupted", "InterruptedRun",
           "Machine", "Plan", "Result", "Run", "Schedule", "Store", "Timeline", "TrainingTuning", "TunedPlan", "Tuning", "block", "calibrate", "check",
           "compare", "diagnose", "diff", "execute", "help", "machine", "merge", "report", "run", "schedule", "show_hlo", "show_machine", "show_mesh", "show_pipeline", "show_plan",
           "show_program", "show_sharding", "show_topology", "show_training", "sweep", "sweep_text", "tune", "validate"]
