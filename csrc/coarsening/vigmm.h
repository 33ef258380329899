// Kernel EM with soft assignments: see torch_gic/ops/vigmm.py. No torch headers.
#pragma once

#include "coarsening/cluster_graph.h"

namespace torch_gic {

// One graph of a batch, as ClusterGraph, with the kernel in place of the adjacency: 'weight' holds its entries beside
// the diagonal.
struct KernelGraph : ClusterGraph {
  const double* diagonal;
  double beta;
};

// EM from the clusters first .. first + num_clusters - 1 of the vertices, which the likeliest clusters replace.
void vigmm(const KernelGraph& graph, int64_t first, int64_t num_clusters, int64_t num_iterations, const Loop& loop,
           int64_t* cluster);

}  // namespace torch_gic
