"""Training on several processes, with PyTorch's own engine: DistributedDataParallel, by gloo on CPUs and by nccl on GPUs.

    torchrun --nproc-per-node 2 examples/ddp.py --level graph
    torchrun --nproc-per-node 2 examples/ddp.py --level node --checkpoint run.pt

At graph level a DistributedSampler gives each process its share of the graphs. At node level it gives each its share of the
seeds, around which a NeighborLoader samples (which needs pyg-lib or torch-sparse); every process holds the graph. A batch of
--batch-size is that of all processes together, and its gradient is the one that a single process would compute. The data is
made here, so nothing is downloaded.

If a process is lost, torchrun ends the others and says which one it was; the same command goes on from the last epoch that is
in the checkpoint. Without torchrun the script runs in one process. Batch normalisation takes the statistics of all processes
on GPUs, and of each process alone on CPUs.
"""

import argparse
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from common.checkpoint import Checkpoint
from common.nodes import check_sampler, sampled_fields
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader, NeighborLoader
from torch_geometric.utils import stochastic_blockmodel_graph

from torch_gic import GIC, ReceptiveFields, walk_counts
from torch_gic.datasets import LETTERS, Letters

CLASSES, NEIGHBORS = 4, [10, 5]


def mean_over_processes(loss, count):
    """The part of this process in the mean of a loss over all of them, times their number: DistributedDataParallel divides by
    it. The result is that of one process, however many samples each has.

    Args:
        loss: The sum over the samples of this process.
        count: The number of these samples.
    """
    total = torch.tensor(float(count), device=loss.device)
    dist.all_reduce(total)
    return loss * dist.get_world_size() / total


class GraphLevel:
    """Line drawings of letters."""

    architecture, out_channels = "C(16)-P(0.5)-C(16)-P-FC(32)", len(LETTERS)

    def __init__(self, size, seed):
        self.samples = Letters(size, seed=seed, pre_transform=ReceptiveFields())
        self.in_channels = self.samples.num_features

    def loader(self, batch_size, sampler):
        return DataLoader(self.samples, batch_size, sampler=sampler)

    def predict(self, model, batch):
        sizes = {"batch": batch.batch, "batch_size": batch.num_graphs}
        return model(batch.x, batch.edge_index, fields=batch.fields, **sizes), batch.y


class NodeLevel:
    """Communities of nodes, each of a class that its nodes tell through noise."""

    architecture, out_channels, in_channels = "C(16)-C(16)-FC(32)", CLASSES, CLASSES

    def __init__(self, size, seed):
        check_sampler()
        torch.manual_seed(seed)
        sizes = [max(size // CLASSES, 1)] * CLASSES
        probabilities = torch.full((CLASSES, CLASSES), 1 / size).fill_diagonal_(min(1.0, 30 / size))
        edge_index = stochastic_blockmodel_graph(sizes, probabilities)
        y = torch.arange(CLASSES).repeat_interleave(sizes[0])
        x = F.one_hot(y, CLASSES) + 2 * torch.randn(y.numel(), CLASSES)
        counts = walk_counts(edge_index, num_nodes=y.numel())
        self.data = Data(x=x, edge_index=edge_index, y=y, walk_count=counts)
        self.samples = range(y.numel())

    def loader(self, batch_size, sampler):
        return NeighborLoader(self.data, NEIGHBORS, batch_size=batch_size, sampler=sampler)

    def predict(self, model, batch):
        seeds = batch.batch_size
        return model(batch.x, batch.edge_index, fields=sampled_fields(batch), num_seeds=seeds), batch.y[:seeds]


LEVELS = {"graph": GraphLevel, "node": NodeLevel}


def train(args, rank, world, device):
    level = LEVELS[args.level](args.size, args.seed)
    torch.manual_seed(args.seed)  # the same weights everywhere
    network = GIC(level.in_channels, level.out_channels, level.architecture).to(device)
    if device.type == "cuda":
        network = torch.nn.SyncBatchNorm.convert_sync_batchnorm(network)
    model = DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    settings = {"level": args.level, "size": args.size, "batch_size": args.batch_size, "seed": args.seed}
    checkpoint = Checkpoint(args.checkpoint, settings, model=network, optimizer=optimizer)
    done = (checkpoint.load() if args.checkpoint else None) or {"epoch": 0}
    if rank == 0 and done["epoch"]:
        print(f"Going on from {args.checkpoint} after epoch {done['epoch']}", flush=True)
    dist.barrier()  # before the file is written again

    sampler = DistributedSampler(level.samples, world, rank, seed=args.seed)
    loader = level.loader(max(args.batch_size // world, 1), sampler)
    for epoch in range(done["epoch"] + 1, args.epochs + 1):
        sampler.set_epoch(epoch)
        torch.manual_seed(1000 * epoch + rank)  # the same samples, whether or not the run was interrupted
        model.train()
        start, figures = time.perf_counter(), torch.zeros(3, device=device)  # loss, right, samples
        for batch in loader:
            optimizer.zero_grad()
            out, y = level.predict(model, batch.to(device))
            loss = F.cross_entropy(out, y, reduction="sum")
            mean_over_processes(loss, y.numel()).backward()
            optimizer.step()
            right = int((out.argmax(dim=1) == y).sum())
            figures += torch.tensor([loss.item(), right, y.numel()], device=device)
        dist.all_reduce(figures)
        loss, right, count = figures.tolist()
        seconds = time.perf_counter() - start
        if rank == 0:
            print(
                f"epoch {epoch}: loss {loss / count:.4f}, accuracy {right / count:.1%}, {count / seconds:.0f} per second",
                flush=True,
            )
            if args.checkpoint:
                checkpoint.save(epoch=epoch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def add(name, text, **options):
        parser.add_argument(name, help=f"{text} (default: %(default)s)", **options)

    add("--level", "what is classified", choices=list(LEVELS), default="graph")
    add("--size", "number of graphs, or of nodes", type=int, default=2000)
    add("--epochs", "epochs", type=int, default=10)
    add("--batch-size", "graphs or seeds per batch of all processes together", type=int, default=64)
    add("--seed", "seed of data, weights and batches", type=int, default=0)
    add("--timeout", "seconds to wait for another process", type=int, default=600)
    parser.add_argument("--checkpoint", type=Path, help="file to go on from, written after every epoch (default: none)")
    args = parser.parse_args()

    for name, value in (
        ("RANK", 0),
        ("WORLD_SIZE", 1),
        ("LOCAL_RANK", 0),
        ("MASTER_ADDR", "localhost"),
        ("MASTER_PORT", 29500),
    ):
        os.environ.setdefault(name, str(value))  # what torchrun sets
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(seconds=args.timeout))
    print(f"rank {rank} of {world}: process {os.getpid()}, {device}", flush=True)
    try:
        train(args, rank, world, device)
    except dist.DistError as error:
        raise SystemExit(f"rank {rank} lost another process ({error}); the same command goes on from --checkpoint") from error
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
