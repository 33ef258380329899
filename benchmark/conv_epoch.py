"""An epoch of the paper's network, beside GIN."""

import time

import torch
import torch.nn.functional as F
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, global_add_pool
from tqdm import tqdm

from torch_gic import GIC, ReceptiveFields

from .conv_layers import SCALES
from .data import load_dataset
from .measure import print_table, synchronize


def measure_epoch(args, results, progress):
    def seconds():
        with torch.device("cpu"):
            dataset = load_dataset(args, "NCI1", f"scales{SCALES}", pre_transform=ReceptiveFields(SCALES))
        gic = GIC(dataset.num_features, dataset.num_classes, GIC.PRINTED, readout="last")
        gin = GIN(dataset.num_features, 64, num_layers=5, out_channels=dataset.num_classes)
        models = {
            "GIC, the paper's network": (
                gic,
                lambda data: gic(data.x, data.edge_index, batch=data.batch, fields=(data.field_index, data.field_weight)),
            ),
            "GIN, five layers of 64": (gin, lambda data: global_add_pool(gin(data.x, data.edge_index), data.batch)),
        }
        return {name: epoch(name, dataset, *model) for name, model in models.items()}

    def epoch(name, dataset, model, forward):
        optimizer = torch.optim.Adam(model.parameters())
        with torch.device("cpu"):  # where batches are drawn
            batches = DataLoader(dataset, batch_size=args.graphs, shuffle=True)
            train(forward, optimizer, next(iter(batches)).to(args.device))  # warms up
            synchronize()
            start = time.perf_counter()
            for data in tqdm(batches, desc=name, leave=False):
                train(forward, optimizer, data.to(args.device))
            synchronize()
        return time.perf_counter() - start

    torch.set_num_threads(args.threads[-1])
    rows = [[name, f"{value:.1f} s"] for name, value in results.get("epoch", seconds).items()]
    print_table(
        f"NCI1: an epoch, batches of {args.graphs} graphs, fields computed before, threads: {args.threads[-1]}",
        ["", "time"],
        rows,
    )


def train(forward, optimizer, data):
    optimizer.zero_grad()
    F.cross_entropy(forward(data), data.y).backward()
    optimizer.step()
