"""Numbers and tables for people."""

from __future__ import annotations

from typing import Any, List, Sequence


def seconds(value: float) -> str:
    """``49.83 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value * 1e9:.4g} ns" if value else "0 s"


def size(value: float) -> str:
    """``2.918 GB``."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.0f} B"


def table(rows: Sequence[Sequence[Any]], right: str = "") -> List[str]:
    """Lines of a table; the first row is its heading, `right` has an r for each column that is flush right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    pad = [str.rjust if right[column : column + 1] == "r" else str.ljust for column in range(len(widths))]
    return ["  ".join(fit(cell, width) for fit, cell, width in zip(pad, row, widths)).rstrip() for row in texts]
