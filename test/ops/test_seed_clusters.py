import pytest
import torch
from conftest import permute, random_graph
from torch_geometric.data import Batch, Data

from torch_gic._library import load_kernels
from torch_gic.ops import seed_clusters
from torch_gic.ops.seed_clusters import reference


def path(n):
    vertex = torch.arange(n - 1)
    return torch.stack([vertex, vertex + 1])


def test_by_hand():
    # On the path 0 - 1 - ... - 6: 3 has the highest priority; then 0 and 6 are farthest, and 6 has the higher priority.
    priority = torch.tensor([1.0, 0, 0, 9, 0, 0, 2])
    cluster, seed = seed_clusters(path(7), priority, torch.zeros(7, dtype=torch.long), torch.tensor([3]))
    assert seed.tolist() == [3, 6, 0]
    assert cluster.tolist() == [2, 2, 0, 0, 0, 1, 1]  # vertex 1 is nearer to 0; of equals the earlier seed has it


def test_parts_without_a_seed_stay_in_cluster_0():
    cluster, seed = seed_clusters(
        torch.tensor([[0], [1]]), torch.tensor([3.0, 0, 2, 1]), torch.zeros(4, dtype=torch.long), torch.tensor([2])
    )
    assert seed.tolist() == [0, 2]
    assert cluster.tolist() == [0, 0, 1, 0]


def operands(data, num_clusters, seed=0):
    row, order = torch.sort(data.edge_index[0], stable=True)
    col = data.edge_index[1][order]
    rowptr = torch.searchsorted(row, torch.arange(data.num_nodes + 1))
    priority = torch.randint(3, (data.num_nodes,), generator=torch.Generator().manual_seed(seed)).double()  # many ties
    offset = torch.cat([torch.zeros(1, dtype=torch.long), num_clusters.cumsum(0)])
    return rowptr, col, priority, data.ptr, offset, int(offset[-1])


@pytest.mark.skipif(load_kernels().active == "reference", reason="no compiled kernels here")
@pytest.mark.parametrize("seed", range(10))
def test_kernel_equals_the_reference(seed):
    sizes = torch.randint(1, 40, (12,), generator=torch.Generator().manual_seed(seed)).tolist()
    batch = Batch.from_data_list([random_graph(n, n + n // 2, seed=seed + n) for n in sizes])
    num_clusters = (torch.tensor(sizes) * 0.4).ceil().long()
    arguments = operands(batch, num_clusters, seed)
    for kernel, plain in zip(torch.ops.torch_gic.seed_clusters(*arguments), reference(*arguments), strict=True):
        assert torch.equal(kernel, plain)


def test_opcheck():
    batch = Batch.from_data_list([random_graph(6, 8), random_graph(9, 5)])
    torch.library.opcheck(torch.ops.torch_gic.seed_clusters.default, operands(batch, torch.tensor([2, 3])))


@pytest.mark.skipif(load_kernels().active == "reference", reason="the reference has no such check")
def test_bad_operands():
    batch = Batch.from_data_list([random_graph(6, 8)])
    rowptr, col, priority, ptr, offset, total = operands(batch, torch.tensor([2]))
    with pytest.raises(RuntimeError, match="'priority' to hold float64"):
        torch.ops.torch_gic.seed_clusters(rowptr, col, priority.float(), ptr, offset, total)
    with pytest.raises(RuntimeError, match=r"at most one cluster a vertex \(got 7 clusters for the 6 vertices"):
        torch.ops.torch_gic.seed_clusters(rowptr, col, priority, ptr, torch.tensor([0, 7]), 7)


def test_order_of_vertices_and_of_the_batch_does_not_matter(graphs):
    parts, batch = graphs
    num_clusters = torch.tensor([3, 1, 4, 2])
    priority = batch.x[:, 0]  # no ties
    cluster, seed = seed_clusters(batch.edge_index, priority, batch.batch, num_clusters)
    start = 0
    for number, part in enumerate(parts):
        alone, alone_seed = seed_clusters(
            part.edge_index, part.x[:, 0], torch.zeros(part.num_nodes, dtype=torch.long), num_clusters[number : number + 1]
        )
        assert torch.equal(cluster[batch.batch == number], alone)
        assert torch.equal(seed[start : start + len(alone_seed)], alone_seed + batch.ptr[number])
        start += len(alone_seed)
    data = Data(x=batch.x, edge_index=batch.edge_index, edge_weight=batch.edge_weight, batch=batch.batch)
    moved, order = permute(data)  # vertices of the graphs now lie among each other
    moved_cluster, moved_seed = seed_clusters(moved.edge_index, moved.x[:, 0], moved.batch, num_clusters)
    assert torch.equal(moved_seed, order[seed])
    assert torch.equal(moved_cluster[order], cluster)
