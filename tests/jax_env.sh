#!/usr/bin/env bash
# Makes a Python environment with JAX and its compilers of TPUs and GPUs (neither is needed), as pinned in jax_requirements.txt.
# usage: tests/jax_env.sh DIR    then DIR/bin/python validation/aot/make.py ...; a second run changes nothing
set -euo pipefail

if (($# != 1)); then
  echo "usage: tests/jax_env.sh DIR" >&2
  exit 2
fi
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
requirements="$here/jax_requirements.txt"
# shellcheck source=tools/scripts/packages.sh
source "$here/../tools/scripts/packages.sh"

# What is installed says so with a copy of the requirements, which is written last.
installed="$1/jax_requirements.txt"
if cmp -s "$requirements" "$installed"; then
  echo "JAX is installed in $1"
  exit 0
fi

install_missing python3-venv
# Debian's Python, for which the hashes are: another one may come first in PATH.
/usr/bin/python3 -m venv "$1"
# Only what is imported gets compiled to bytecode, then.
if ! "$1/bin/pip" --quiet --disable-pip-version-check install --no-compile --no-deps --require-hashes --only-binary=:all: --requirement "$requirements"; then
  echo "tests/jax_env.sh: pip could not install the packages of jax_requirements.txt" >&2
  exit 1
fi
cp "$requirements" "$installed"
echo "JAX is installed in $1"
