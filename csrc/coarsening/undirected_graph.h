// The graphs that coarsening looks at: see torch_gic/ops/undirected_graph.py, whose results these are. No torch
// headers.
#pragma once

#include <vector>

#include "coarsening/cluster_graph.h"
#include "coarsening/combine.h"

namespace torch_gic {

// A symmetric adjacency in compressed rows, sorted by column, and its row sums.
struct UndirectedGraph {
  std::vector<int64_t> rowptr;
  std::vector<Link> entries;
  std::vector<double> degree;
};

// (A + A^T) / 2 in units of the heaviest edge of each graph, of edges source -> target with positive weight.
template <typename T>
UndirectedGraph undirected_graph(const int64_t* source, const int64_t* target, const T* weight, int64_t num_edges,
                                 const int64_t* batch, int64_t num_nodes, int64_t num_graphs, const Loop& loop);

// The rank of each vertex in its graph, whose vertices ptr[g] .. ptr[g + 1] - 1 are: see
// torch_gic/ops/structural_rank.py.
void structural_rank(const ClusterGraph& graphs, const double* influence, const int64_t* ptr, int64_t num_graphs,
                     const Loop& loop, int64_t* rank);

}  // namespace torch_gic
