"""What all commands share: arguments, tables and pictures."""

import argparse
from pathlib import Path

from tabulate import tabulate

RESULTS = Path(__file__).parents[1] / "results"


def make_parser(module, description):
    """A parser of `python -m benchmark.MODULE`, whose help is the docstring as it stands."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmark.{module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_data_arguments(parser):
    parser.add_argument("--root", type=Path, default=Path("data"), help="where PyG keeps the data (default: %(default)s)")
    parser.add_argument(
        "--data-url",
        help="folder that holds tudataset, moleculenet, planetoid, heterophilous, twitch, amazon_coauthor, actor and circuits,"
        " as http(s):// or file:// (default: PyG's own sources)",
    )


def add_output_arguments(parser, quick, files="the results"):
    """Where results go."""
    parser.add_argument("--output", type=Path, help=f"folder of {files} (default: benchmark/results)")
    parser.add_argument("--quick", action="store_true", help=f"to see that it works: {quick}, in results/quick")


def add_run_arguments(parser, quick):
    """Of commands that train: how many processes work, where results go, and where data comes from."""
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time, each on one core (default: %(default)s)")
    add_output_arguments(parser, quick)
    add_data_arguments(parser)


def parse(parser, quick, *counts):
    """The arguments: with `--quick` those of `quick`, and with a folder for results. Refuses counts below 1."""
    args = parser.parse_args()
    if args.quick:
        vars(args).update(quick)
    for name in counts:
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"Expected --{name.replace('_', '-')} to be at least 1 (got {value})")
    if "output" in args and args.output is None:
        args.output = Path("results/quick") if args.quick else RESULTS
    return args


def print_table(title, columns, rows):
    """Rows of text cells under their columns, the first one to the left."""
    print(f"\n{title}")
    print(_table(columns, rows, "plain"))


def markdown(columns, rows):
    return _table(columns, rows, "github")


def _table(columns, rows, style):
    align = ["left"] + ["right"] * (len(columns) - 1)
    return tabulate(list(rows), headers=columns, tablefmt=style, colalign=align if rows else None, disable_numparse=True)


def pyplot():
    """matplotlib, imported when a picture is drawn and not before."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
