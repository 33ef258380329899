"""The arguments that several commands share."""

import argparse
from pathlib import Path

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


def add_run_arguments(parser, quick):
    """Of commands that train: where results go, and how many processes work."""
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time, each on one core (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="folder of the results (default: benchmark/results)")
    parser.add_argument("--quick", action="store_true", help=f"to see that it works: {quick}, in results/quick")
    add_data_arguments(parser)


def complete(parser, args, *counts):
    """Fills in the folder, and refuses counts below 1."""
    for name in ("jobs", *counts):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"Expected --{name.replace('_', '-')} to be at least 1 (got {value})")
    if args.output is None:
        args.output = Path("results/quick") if args.quick else RESULTS
    return args
