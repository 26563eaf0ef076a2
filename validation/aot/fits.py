#!/usr/bin/env python3
"""By what the compiler of TPUs decides whether a module fits: a stored program with other arguments, and what it says.

usage: fits.py NAME KEY=NUMBER[,NUMBER...]     a row of table.py and an argument of its program

    JAX_PLATFORMS=cpu build/jax/bin/python validation/aot/fits.py decoder_data_v5e batch=256,272,288,320

Prints a line for each number: XLA's peak and its argument + output + temp - alias, or the compiler's refusal. About half a minute of the processor each.
"""
import os
import pathlib
import sys

import make
from table import ROWS


def main():
    os.environ.update(make.ENVIRONMENT)
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "programs"))
    import importlib
    name, setting = sys.argv[1:]
    key, numbers = setting.split("=")
    row = next(row for row in ROWS if row["name"] == name)
    generation, extents = row["slice"].split(":")
    mesh = make.mesh_of(row, make.devices_of(generation, [int(extent) for extent in extents.split("x")], row["slices"]))
    file, function = row["program"].split(":")
    for number in numbers.split(","):
        program, arguments = getattr(importlib.import_module(file), function)(mesh, **(row["arguments"] | {key: int(number)}))
        try:
            told = program.lower(*arguments).compile(compiler_options=row["options"]).memory_analysis()
        except Exception as refusal:  # jaxlib's error has no class of its own for this
            print(f"{key}={number}: {str(refusal).splitlines()[0]}", flush=True)
            continue
        allocated = told.argument_size_in_bytes + told.output_size_in_bytes + told.temp_size_in_bytes - told.alias_size_in_bytes
        print(f"{key}={number}: accepted, peak {told.peak_memory_in_bytes / 1e9:.3f} GB, argument + output + temp - alias {allocated / 1e9:.3f} GB", flush=True)


if __name__ == "__main__":
    main()
