"""Tables on the screen and in Markdown."""

from tabulate import tabulate


def print_table(title, columns, rows):
    """Rows of text cells under their columns, the first one to the left."""
    print(f"\n{title}")
    print(_table(columns, rows, "plain"))


def markdown(columns, rows):
    return _table(columns, rows, "github")


def _table(columns, rows, style):
    align = ["left"] + ["right"] * (len(columns) - 1)
    return tabulate(list(rows), headers=columns, tablefmt=style, colalign=align if rows else None, disable_numparse=True)
