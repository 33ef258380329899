// The start of coarsening: see torch_gic/coarsening/merge_clusters.py, whose results these are.
#pragma once

#include "coarsening/cluster_graph.h"

namespace torch_gic {

// Writes the cluster (first .. first + num_clusters - 1) of each vertex of the graph. With a max_size above 0, -1 for
// vertices that are left over.
void merge_clusters(const ClusterGraph& graph, int64_t first, int64_t num_clusters, int64_t max_size, const Loop& loop,
                    int64_t* cluster);

}  // namespace torch_gic
