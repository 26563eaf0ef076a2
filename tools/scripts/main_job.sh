#!/usr/bin/env bash
# What ./build.sh runs at its end: the result that a new user sees first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

exec build/podsim help
