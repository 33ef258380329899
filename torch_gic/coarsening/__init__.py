"""The third stage of the network: from a graph to the clusters of a smaller one.

Its steps have one file each: ``graph``, ``rank``, ``merge``, ``move``, and ``select``, which calls the others. Further files:

- ``fill`` and ``refine``: clusters of bounded size;
- ``responsibility``: the gradient;
- ``reduce`` and ``connect``: features and edges of the clusters;
- ``soft``: soft EM and the printed affinity.
"""

from torch_gic.coarsening.cluster import cluster
from torch_gic.coarsening.connect import cluster_edges
from torch_gic.coarsening.fill import fill_clusters
from torch_gic.coarsening.graph import UndirectedGraph, node_volume, undirected_graph
from torch_gic.coarsening.merge import merge_clusters
from torch_gic.coarsening.move import move_nodes
from torch_gic.coarsening.rank import structural_rank
from torch_gic.coarsening.reduce import cluster_max
from torch_gic.coarsening.refine import refine_clusters
from torch_gic.coarsening.responsibility import responsibility
from torch_gic.coarsening.select import Coarsening, coarsen

__all__ = [
    "Coarsening",
    "UndirectedGraph",
    "cluster",
    "cluster_edges",
    "cluster_max",
    "coarsen",
    "fill_clusters",
    "merge_clusters",
    "move_nodes",
    "node_volume",
    "refine_clusters",
    "responsibility",
    "structural_rank",
    "undirected_graph",
]
