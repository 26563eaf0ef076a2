"""The time of a step, by a program's file: python3 -m podsim.jax step.py:train --slice v5e-256 --mesh data=16,model=16"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import sys
from typing import Any, Dict, List, Optional

from .._errors import HostError, InputError, InternalError
from . import CompileError, mesh, search, simulate
from ._errors import import_jax

USAGE = """\
FILE.py:FUNCTION names a function of a mesh that returns what is compiled and its arguments:

    def train(mesh):
        x = jax.ShapeDtypeStruct((8192, 4096), jnp.bfloat16, sharding=jax.NamedSharding(mesh, jax.P("data", None)))
        return jax.jit(step, donate_argnums=0), (state, x)

Several --mesh are compiled side by side and ranked."""


def _axes(text: str) -> Dict[str, int]:
    try:
        return {name: int(size) for name, size in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f'expected AXIS=N,..., as data=16,model=16, found "{text}"') from None


def _pair(text: str) -> List[str]:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f'expected NAME=VALUE, found "{text}"')
    return text.split("=", 1)


def _function(text: str) -> Any:
    """FUNCTION of FILE.py, which finds the modules beside it."""
    file, _, name = text.rpartition(":")
    path = pathlib.Path(file)
    if not path.is_file():
        raise InputError(f'expected FILE.py:FUNCTION, found "{text}"', argument="program")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    if not callable(getattr(module, name, None)):
        raise InputError(f"{file} has no function {name}", argument="program")
    return getattr(module, name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m podsim.jax", description=__doc__, epilog=USAGE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="FILE.py:FUNCTION")
    parser.add_argument("--slice", required=True, help="v5e-256, v5p:4x4x4, h100:16x8, ...: what need not be there")
    parser.add_argument("--mesh", required=True, type=_axes, action="append", metavar="AXIS=N,...", help="repeatable")
    parser.add_argument("--pods", type=int, default=1, metavar="N", help="slices")
    parser.add_argument("--machine", help="podsim's, if another one than the slice's is meant; a name or a file")
    parser.add_argument("--custom-call", type=_pair, action="append", default=[], metavar="NAME=FLOPS[,BYTES]", help="what a kernel costs; repeatable")
    parser.add_argument("--compiler-option", type=_pair, action="append", default=[], metavar="NAME=VALUE", help="for XLA; repeatable")
    parser.add_argument("--trace", metavar="FILE", help="when everything happens: FILE.json, FILE.xplane.pb")
    parser.add_argument("--report", metavar="FILE.html", help="one page of it")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor keep compiled modules")
    return parser


def run(given: argparse.Namespace) -> None:
    """Prints the step, or the ranking of several meshes."""
    import_jax()  # before the program does: podsim says what to install
    make = _function(given.program)
    how = {"machine": given.machine, "custom_calls": dict(given.custom_call), "compiler_options": dict(given.compiler_option), "cache": not given.no_cache}
    meshes = [mesh(given.slice, axes, pods=given.pods) for axes in given.mesh]
    if len(meshes) > 1:
        ranking = search(make, None, meshes, progress=lambda line: print(line, file=sys.stderr), **how)
        print(ranking)
        step = ranking.best
    else:
        function, arguments = make(meshes[0])
        step = simulate(function, *arguments, mesh=meshes[0], **how)
        print(step)
    for write, path in ((step.trace, given.trace), (step.report, given.report)):
        if path:
            write(path)


def main(words: Optional[List[str]] = None) -> int:
    """The exit status of podsim: 2 for what is wrong with the input, 1 where XLA does not compile the program."""
    given = _parser().parse_args(words)
    try:
        run(given)
    except (InputError, ImportError, CompileError, HostError, InternalError) as error:
        print(f"podsim: error: {error}", file=sys.stderr)
        return 1 if isinstance(error, CompileError) else 3 if isinstance(error, InternalError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
