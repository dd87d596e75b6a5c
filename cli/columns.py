"""Columns by elastic tab stops, as Go's text/tabwriter lays them out, which kubectl prints everything with. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def align(lines: Iterable[str], *, minimum: int, padding: int) -> list[str]:
    """Cells end with a tab; the cells of adjacent lines that have one in the same place form a column.

    `minimum`: of a column's width; `padding`: blanks after its widest cell. What stands behind a line's last tab is in
    no column.
    """
    rows = [line.split("\t") for line in lines]
    widths: list[list[int]] = [[0] * (len(row) - 1) for row in rows]
    _block(rows, widths, 0, 0, len(rows), minimum, padding)
    return [
        "".join(cell.ljust(width) for cell, width in zip(row, have, strict=False)) + row[-1]
        for row, have in zip(rows, widths, strict=True)
    ]


def _block(
    rows: Sequence[Sequence[str]],
    widths: list[list[int]],
    column: int,
    start: int,
    end: int,
    minimum: int,
    padding: int,
) -> None:
    line = start
    while line < end:
        if column >= len(rows[line]) - 1:
            line += 1
            continue
        first = line
        width = minimum
        while line < end and column < len(rows[line]) - 1:
            width = max(width, len(rows[line][column]) + padding)
            line += 1
        for index in range(first, line):
            widths[index][column] = width
        _block(rows, widths, column + 1, first, line, minimum, padding)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """kubectl get's table: three blanks between columns, six at least a column."""
    lines = ["\t".join(header), *("\t".join(_one_line(cell) for cell in row) for row in rows)]
    return "\n".join(align(lines, minimum=6, padding=3)) + "\n"


def _one_line(cell: str) -> str:
    return " ".join(cell.split("\n")).replace("\t", " ")
