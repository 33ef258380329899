// The start of coarsening: see torch_gic/ops/merge_clusters.py, whose results these are.
#pragma once

#include "coarsening/cluster_graph.h"

namespace torch_gic {

// Writes the cluster (first .. first + num_clusters - 1) of each vertex of the graph.
void merge_clusters(const ClusterGraph& graph, int64_t first, int64_t num_clusters, const Loop& loop, int64_t* cluster);

}  // namespace torch_gic
