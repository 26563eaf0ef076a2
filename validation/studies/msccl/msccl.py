"""Run by run.sh."""

import csv, json, os, re, subprocess, sys, xml.etree.ElementTree

podsim, folder, here = sys.argv[1:4]
ON = ["--machine", "dgx_h100", "--slice", "1x8"]
OF_NCCL = ["ring", "tree", "in-switch"]  # what NCCL has: rings, trees, NVLS
COLLECTIVES = {"all_reduce": "all-reduce", "all_gather": "all-gather"}
UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30}


def bytes_of(size):
    number, unit = re.fullmatch(r"(\d+)(\w\w)", size).groups()
    return int(number) * UNITS[unit]


def algorithms():
    """The files by collective: (name, path, smallest and largest size that they are for)."""
    found = {name: [] for name in COLLECTIVES}
    for file in sorted(os.listdir(folder)):
        name = re.sub(r"^ndv5-", "", file.removesuffix(".xml"))
        if not file.endswith(".xml") or file.startswith("ncv4"):
            continue
        root = xml.etree.ElementTree.parse(os.path.join(folder, file)).getroot()
        for collective in found:
            if root.get("coll") == collective.replace("_", "") and root.get("ngpus") == "8":
                found[collective].append((name, os.path.join(folder, file), int(root.get("minBytes", 0)), int(root.get("maxBytes", 2**62))))
    return found


def times(collective, size, files):
    """Microseconds by algorithm; the size is the whole tensor, of which an all-gather's device brings an eighth."""
    each = bytes_of(size) // (8 if collective == "all_gather" else 1)
    names = [name for name in OF_NCCL + ["direct", "halving-doubling"] if not (name == "tree" and collective == "all_gather")]
    command = [podsim, "compare", *ON, "--collective", COLLECTIVES[collective], "--bytes", str(each), "--algorithms", ",".join(names), "--format", "json", "--quiet"]
    rows = json.loads(subprocess.run(command + ["--msccl"] + [path for _, path, _, _ in files], check=True, capture_output=True, text=True).stdout)["rows"]
    return {row["algorithm"].removeprefix("msccl ").removeprefix("ndv5-"): row["makespan_s"] * 1e6 for row in rows}


def ranks(values):
    """From 1; equal values share the mean of their ranks."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) + 1) / 2 for value in values]


def rank_correlation(a, b):
    """Spearman's: Pearson's of the ranks."""
    a, b = ranks(a), ranks(b)
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    both = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    return both / (sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)) ** 0.5


def ordered(found, meant):
    """The fastest first; of equal ones (to 0.1 %) the file meant for the size."""
    text, last = "", None
    for name in sorted(found, key=lambda name: (float(f"{found[name]:.3g}"), name not in meant)):
        text += ("" if last is None else " = " if abs(found[name] / last - 1) < 1e-3 else " < ") + name
        last = found[name]
    return text


def main():
    files = algorithms()
    with open(os.path.join(here, "measured.csv"), encoding="utf-8") as file:
        measured = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rows = []
    for row in measured:
        collective, size = row["collective"], row["size"]
        found = times(collective, size, files[collective])
        ours = min((name for name in OF_NCCL if name in found), key=found.get)
        meant = [name for name, _, least, most in files[collective] if least <= bytes_of(size) <= most and name in found]
        best = min((name for name, *_ in files[collective] if name in found), key=lambda name: (found[name], name not in meant))
        rows.append({"collective": collective, "size": size, "measured_nccl_us": float(row["nccl_us"]), "measured_msccl_us": float(row["msccl_us"]),
                     "nccl_like": ours, "nccl_like_us": found[ours], "msccl": meant[0] if meant else "", "msccl_us": found[meant[0]] if meant else "",
                     "fastest_msccl": best, "fastest_msccl_us": found[best], "order": ordered(found, meant)})
    with open(os.path.join(here, "results.csv"), "w", encoding="utf-8", newline="") as file:
        file.write("# Written by run.sh. nccl_like: the fastest of ring, tree, in-switch. msccl: the file made for this size. order: all, the fastest first.\n")
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()})
    for collective in COLLECTIVES:
        of = [row for row in rows if row["collective"] == collective]
        print(f"\n{COLLECTIVES[collective]}\n\n| size | NCCL measured | {' / '.join(n for n in OF_NCCL if n != 'tree' or collective == 'all_reduce')} | MSCCL measured | file for this size | measured gain | predicted gain | fastest of all |")
        print("|---|---|---|---|---|---|---|---|")
        for row in of:
            gain = f"{row['nccl_like_us'] / row['msccl_us']:.2f}" if row["msccl"] else ""
            print(f"| {row['size']} | {row['measured_nccl_us']:.4g} | {row['nccl_like_us']:.4g} {row['nccl_like']} | {row['measured_msccl_us']:.4g} | "
                  + (f"{row['msccl_us']:.4g} {row['msccl']}" if row["msccl"] else "none") + f" | {row['measured_nccl_us'] / row['measured_msccl_us']:.2f} | {gain} | {row['order'].split()[0]} |")
        with_file = [row for row in of if row["msccl"]]
        for what, measured_of, predicted_of, among in [
                ("times of NCCL", lambda r: r["measured_nccl_us"], lambda r: r["nccl_like_us"], of),
                ("times of MSCCL", lambda r: r["measured_msccl_us"], lambda r: r["msccl_us"], with_file),
                ("gain of MSCCL over NCCL", lambda r: r["measured_nccl_us"] / r["measured_msccl_us"], lambda r: r["nccl_like_us"] / r["msccl_us"], with_file)]:
            print(f"\nrank correlation of {what}, {len(among)} sizes: {rank_correlation([measured_of(r) for r in among], [predicted_of(r) for r in among]):.3f}", end="")
        agree = sum((r["measured_nccl_us"] > r["measured_msccl_us"]) == (r["nccl_like_us"] > r["msccl_us"]) for r in with_file)
        print(f"\nMSCCL's file is faster or slower as measured at {agree} of {len(with_file)} sizes")


main()
