"""Writes RESULTS.md and its pictures from the files of runs, and nothing else."""

from pathlib import Path

from ..common.arguments import RESULTS, make_parser
from .collect import graph_results
from .paper import write_paper
from .peers import write_graphs, write_molecules, write_nodes, write_parts
from .pictures import PICTURES
from .usefulness import write_units, write_worth

HEAD = """# Results

Written by `python -m benchmark.report` from the runs in [`FOLDER`](FOLDER); do not edit. What was to be run and tested was
committed before: [the plan](PLAN.md). Accuracy in percent, mean and standard deviation."""


def make_report(folder):
    """The text of RESULTS.md, from the runs in a folder alone."""
    parts = [HEAD.replace("FOLDER", folder.name)]
    for write in (write_graphs, write_parts, write_units, write_worth, write_molecules, write_nodes):
        parts += write(folder)
    if graph_results(folder):
        parts += ["## Pictures", *(f"![{caption}]({folder.name}/{name})" for name, (caption, _) in PICTURES.items())]
    return "\n\n".join([*parts, *write_paper(folder)]) + "\n"


def main():
    parser = make_parser("report", __doc__)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the runs (default: benchmark/results)")
    parser.add_argument("--quick", action="store_true", help="of the runs of results/quick")
    args = parser.parse_args()
    folder = Path("results/quick") if args.quick else args.output
    path = folder.parent / "RESULTS.md"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(make_report(folder))
    for name, (_, draw) in PICTURES.items():
        draw(folder, folder / name)
    print(f"Report: {path}")


if __name__ == "__main__":
    main()
