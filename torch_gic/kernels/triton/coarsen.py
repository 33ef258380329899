"""All stages of coarsening on a GPU: graph and ranks by PyTorch, merging and moving by one program per graph."""

from functools import partial

from torch_gic.coarsening.select import reference
from torch_gic.kernels.triton.merge_clusters import merge_clusters
from torch_gic.kernels.triton.move_nodes import move_nodes

coarsen = partial(reference, merge=merge_clusters, move=move_nodes)
