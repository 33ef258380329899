// Clusters of bounded size: what merging leaves over. See torch_gic/coarsening/fill.py. No torch headers.
#pragma once

#include "coarsening/graph.h"

namespace torch_gic {

// Gives each node without a cluster (-1) to one of 0 .. num_clusters - 1 that has less than max_size nodes. There must
// be room for all.
void fill_clusters(const Graph& graph, int64_t num_clusters, int64_t max_size, int32_t* cluster);

}  // namespace torch_gic
