// Hard EM of coarsening: see torch_gic/coarsening/move_vertices.py, whose results these are.
#pragma once

#include "coarsening/cluster_graph.h"

namespace torch_gic {

// Moves the vertices of the graph between its clusters first .. first + num_clusters - 1. With a max_size above 0, none
// moves to a cluster that has so many vertices.
void move_vertices(const ClusterGraph& graph, int64_t first, int64_t num_clusters, int64_t num_iterations,
                   int64_t max_size, const Loop& loop, int64_t* cluster);

}  // namespace torch_gic
