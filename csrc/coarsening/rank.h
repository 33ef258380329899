// Stage 2 of coarsening, the ranks that break ties: see torch_gic/coarsening/rank.py, whose results these are. No torch
// headers.
#pragma once

#include "coarsening/graph.h"

namespace torch_gic {

// Writes the rank of each node of the graph in it.
void structural_rank(const Graph& graph, const double* influence, int64_t num_refinements, const Loop& loop,
                     int64_t* rank);

}  // namespace torch_gic
