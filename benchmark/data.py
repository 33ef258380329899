"""The data sets of the benchmarks."""

from torch_geometric.datasets import TUDataset


def load_dataset(args, name, folder="", **options):
    """A data set of the TU collection, kept in a folder of `args.root`, from `args.data_url` or from where PyG finds it."""
    if args.data_url:
        TUDataset.url = args.data_url.rstrip("/")
    try:
        return TUDataset(args.root / folder, name, **options)
    except Exception as error:  # PyG and the file systems behind it raise what they like
        raise SystemExit(
            f"Could not get {name} from {TUDataset.url}: {error}\n"
            "Check the name and the network, or give the folder of its zip file: --data-url file:///path/to/folder"
        ) from error
