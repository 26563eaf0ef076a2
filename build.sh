#!/usr/bin/env bash
# From a fresh clone to a first result: installs what is missing, builds the podsim command, runs the main job (tools/scripts/main_job.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat << 'TEXT'
usage: ./build.sh [--no-run] [--package]

Installs the missing Debian packages (as root; otherwise names them and stops with status 2), builds build/podsim and the Python module (build/python),
and runs the main job.
  --no-run   build only
  --package  also write Debian packages, build/*podsim*_VERSION_ARCH.deb
TEXT
}

run=true
package=false
while (($# > 0)); do
  case "$1" in
    --no-run) run=false ;;
    --package) package=true ;;
    -h | --help) usage && exit 0 ;;
    *)
      echo "build.sh: error: unknown option \"$1\"" >&2
      usage >&2
      exit 2
      ;;
  esac
  shift
done

# shellcheck source=tools/scripts/packages.sh
source tools/scripts/packages.sh
packages=("${build_packages[@]}")
if $package; then packages+=("${package_packages[@]}"); fi
install_missing "${packages[@]}"

# Only the command and the module: the tests take longer to compile than everything else, and ./test.sh builds them.
cmake --preset release
cmake --build --preset release --target podsim podsim_python

if $package; then
  (cd build && cpack)
fi

if $run; then
  exec tools/scripts/main_job.sh
fi
