"""Where PyG takes data from, and what is said where it cannot."""

from contextlib import contextmanager

import torch_geometric.datasets as pyg
from filelock import FileLock

SOURCES = {  # class of PyG: the address below --data-url
    "TUDataset": "tudataset",
    "MoleculeNet": "moleculenet/{}",
    "Planetoid": "planetoid",
    "HeterophilousGraphDataset": "heterophilous",
    "Twitch": "twitch",
    "Amazon": "amazon_coauthor/",
    "Coauthor": "amazon_coauthor/",
    "Actor": "actor",
}


@contextmanager
def loading(args, kind, name):
    """Gives the class of PyG with its address, while no other process loads this data set."""
    dataset = getattr(pyg, kind)
    if args.data_url:
        dataset.url = f"{args.data_url.rstrip('/')}/{SOURCES[kind]}"
    try:
        args.root.mkdir(parents=True, exist_ok=True)
        with FileLock(args.root / f"{name}.lock"):  # of two commands at a time, one unpacks and the other waits
            yield dataset
    except Exception as error:  # PyG and the file systems behind it raise what they like
        raise SystemExit(
            f"Could not get {name} from {dataset.url}: {error}\n"
            f"Check the name and the network, or give the folder that holds {SOURCES[kind].split('/')[0]}:"
            " --data-url file:///path/to/folder"
        ) from error


def load_tu(args, name, **options):
    """A data set of the TU collection."""
    with loading(args, "TUDataset", name) as dataset:
        return dataset(args.root / "TU", name, **options)
