// Stage 1 of coarsening, the graph: see torch_gic/coarsening/graph.py, whose results these are. No torch headers.
#pragma once

#include <vector>

#include "coarsening/combine.h"
#include "coarsening/loop.h"

namespace torch_gic {

// The undirected graphs of a batch, in compressed rows that are sorted by column. The nodes of a graph stand side by
// side.
struct UndirectedGraphs {
  std::vector<int64_t> start;  // of the entries of each row, with gaps behind them
  std::vector<int64_t> count;  // of the entries of each row
  std::vector<Link> entries;
  std::vector<double> degree;
};

// (A + A^T) / 2 in units of the heaviest edge of each graph, of edges source -> target with positive weight (1 without
// any).
template <typename T>
UndirectedGraphs undirected_graphs(const int64_t* source, const int64_t* target, const T* weight, int64_t num_edges,
                                   const int64_t* batch, int64_t num_nodes, int64_t num_graphs, const Loop& loop);

// One graph as the stages see it: its nodes are begin .. end - 1 of the arrays, which are those of the batch.
struct Graph {
  int64_t begin, end;
  const int64_t* rowptr;
  const int64_t* col;
  const double* weight;
  const double* node_weight;
  const int64_t* rank;

  int64_t size() const { return end - begin; }

  // Calls visit(j, weight) for each neighbour of node i but itself, both counted from 0 in this graph.
  template <typename Visit>
  void each_neighbor(int64_t i, const Visit& visit) const {
    for (int64_t e = rowptr[begin + i]; e < rowptr[begin + i + 1]; ++e) {
      const int64_t j = col[e] - begin;
      if (j != i) visit(j, weight[e]);
    }
  }
};

// The weight of each node: its influence, times its degree on request; a node without an edge has the mean weight of
// the entries of its graph in place of the degree.
void node_weights(const UndirectedGraphs& graphs, const double* influence, bool by_degree, const int64_t* ptr,
                  int64_t num_graphs, double* node_weight);

}  // namespace torch_gic
