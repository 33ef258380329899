// Kernel EM with soft assignments: see torch_gic/coarsening/soft/em.py. No torch headers.
#pragma once

#include "coarsening/graph.h"

namespace torch_gic {

// One graph of a batch, with affinities in place of the adjacency: 'weight' holds those beside the diagonal.
struct AffinityGraph : Graph {
  const double* diagonal;
  double beta;
};

// EM from the clusters first .. first + num_clusters - 1 of the nodes, which the likeliest clusters replace.
void soft_em(const AffinityGraph& graph, int64_t first, int64_t num_clusters, int64_t num_iterations, const Loop& loop,
             int64_t* cluster);

}  // namespace torch_gic
