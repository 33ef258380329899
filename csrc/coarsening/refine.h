// Stage 4 of coarsening to clusters of bounded size, refining: see torch_gic/coarsening/refine.py. No torch headers.
#pragma once

#include "coarsening/graph.h"

namespace torch_gic {

struct RefineSettings {
  int64_t num_iterations;
  int64_t max_size;  // of a cluster in nodes
  int64_t num_passes;
  int64_t growth;
};

// Replaces the cluster of each node of the graph, which is one of 0 .. num_clusters - 1.
void refine_clusters(const Graph& graph, const RefineSettings& settings, int64_t num_clusters, int32_t* cluster);

}  // namespace torch_gic
