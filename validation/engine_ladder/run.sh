#!/usr/bin/env bash
# The schedules of schedules.csv on every engine: results.csv, and the table of README.md. Needs podsim, with --mpi also podsim_mpirun, in build/.
#
# usage: run.sh [--fit] [--mpi]
#   --fit    fits machine.textproto again to validation/datasets/mpi_2_ranks
#   --mpi    measures on this host again; without it the measured times stay
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=validation/engine_ladder
dataset=validation/datasets/mpi_2_ranks
fit=false
measure=
for option in "$@"; do
  case "$option" in
    --fit) fit=true ;;
    --mpi) measure=yes ;;
    *)
      echo "usage: run.sh [--fit] [--mpi]" >&2
      exit 2
      ;;
  esac
done
if $fit; then
  build/podsim calibrate "$dataset/observations.csv" --base "$dataset/base.textproto" --slice 2 --dataset mpi_2_ranks --quiet \
    -o "$folder/machine.textproto" > /dev/null
fi
exec python3 - "$folder" "$measure" << 'PYTHON'
import csv, json, os, shlex, subprocess, sys, tempfile

folder, measures = sys.argv[1], sys.argv[2] != ""
results = os.path.join(folder, "results.csv")
columns = ["name", "devices", "tasks", "analytic_s", "des_s", "simgrid_s", "des_against_simgrid", "mpi_s", "mpi_against_des"]


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def words_of(row):
    machine = row["machine"]
    if machine.endswith(".textproto"):
        machine = os.path.join(folder, machine)
    return ["--machine", machine] + shlex.split(row["options"])


def podsim(*words):
    return subprocess.run(["build/podsim", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def measured(row):
    """The least of many runs, in three rounds, as one may be disturbed."""
    with tempfile.TemporaryDirectory() as place:
        schedule = os.path.join(place, "schedule.pb")
        podsim("show", "schedule", *words_of(row), "--lowered", "-o", schedule)
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = ["mpirun", *root, "--bind-to", "core", "-n", row["ranks"], "build/podsim_mpirun"]
        command += ["--schedule", schedule, "--repeat", "300", "--format", "json"]
        return min(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["makespan_s"] for _ in range(3))


def relative(of, to):
    return f"{of / to - 1:+.1e}" if abs(of / to - 1) < 1e-3 else f"{of / to - 1:+.3f}"


before = {row["name"]: row["mpi_s"] for row in rows_of(results)} if os.path.exists(results) else {}
table = []
for row in rows_of(os.path.join(folder, "schedules.csv")):
    runs = {engine: json.loads(podsim("run", *words_of(row), "--engine", engine, "--format", "json")) for engine in ("analytic", "des", "simgrid")}
    time = {engine: run["makespan_s"] for engine, run in runs.items()}
    mpi = "" if not row["ranks"] else repr(measured(row)) if measures else before.get(row["name"], "")
    table.append({"name": row["name"], "devices": runs["des"]["devices"], "tasks": runs["des"]["tasks"],
                  "analytic_s": repr(time["analytic"]), "des_s": repr(time["des"]), "simgrid_s": repr(time["simgrid"]),
                  "des_against_simgrid": relative(time["des"], time["simgrid"]), "mpi_s": mpi,
                  "mpi_against_des": relative(float(mpi), time["des"]) if mpi else ""})
    print(row["name"], file=sys.stderr)

with open(results, "w", encoding="utf-8", newline="") as file:
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)


def microseconds(text):
    return f"{1e6 * float(text):.1f}" if text else ""


begin, end = "<!-- written by run.sh -->\n", "<!-- end -->\n"
lines = ["| schedule | devices | analytic, us | des, us | simgrid, us | des to simgrid | MPI, us | MPI to des |", "|---|---|---|---|---|---|---|---|"]
for row in table:
    share = f"{100 * float(row['mpi_against_des']):+.0f} %" if row["mpi_s"] else ""
    lines.append(f"| {row['name']} | {row['devices']} | {microseconds(row['analytic_s'])} | {microseconds(row['des_s'])} | "
                 f"{microseconds(row['simgrid_s'])} | {row['des_against_simgrid']} | {microseconds(row['mpi_s'])} | {share} |")
readme = os.path.join(folder, "README.md")
with open(readme, encoding="utf-8") as file:
    text = file.read()
text = text[: text.index(begin) + len(begin)] + "\n".join(lines) + "\n" + text[text.index(end) :]
with open(readme, "w", encoding="utf-8") as file:
    file.write(text)
PYTHON
