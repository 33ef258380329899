"""The data sets of the benchmarks."""

from pathlib import Path

from filelock import FileLock
from torch_geometric.datasets import TUDataset


def add_data_arguments(parser):
    """Those that `load_dataset` reads."""
    parser.add_argument("--root", type=Path, default=Path("data"), help="where PyG keeps the data (default: %(default)s)")
    parser.add_argument("--data-url", help="folder with NAME.zip, as http(s):// or file:// (default: PyG's own)")


def load_dataset(args, name, folder="", **options):
    """A data set of the TU collection, kept in a folder of `args.root`, from `args.data_url` or from where PyG finds it."""
    if args.data_url:
        TUDataset.url = args.data_url.rstrip("/")
    root = args.root / folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{name}.lock"):  # of two commands at a time, one unpacks and the other waits
            return TUDataset(root, name, **options)
    except Exception as error:  # PyG and the file systems behind it raise what they like
        raise SystemExit(
            f"Could not get {name} from {TUDataset.url}: {error}\n"
            "Check the name and the network, or give the folder of its zip file: --data-url file:///path/to/folder"
        ) from error
