// The gradient of coarsening: see torch_gic/coarsening/responsibility.py, whose results these are. No torch headers.
#pragma once

#include "coarsening/graph.h"

namespace torch_gic {

// The responsibility of the cluster of each node of the graph for it, or, given a gradient of them, that of the node
// weights.
void responsibility(const Graph& graph, const int64_t* cluster, int64_t first_cluster, int64_t num_clusters,
                    double beta, const double* gradient, double* result);

}  // namespace torch_gic
