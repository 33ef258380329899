// Stage 4 of coarsening, moving: see torch_gic/coarsening/move.py, whose results these are. No torch headers.
#pragma once

#include "coarsening/graph.h"
#include "common/large_pages.h"

namespace torch_gic {

struct MoveSettings {
  int64_t num_iterations;
  double rounding;        // relative errors that decide nothing
  int64_t most_together;  // nodes that go from one cluster to another in one iteration
};

// Moves the nodes of graphs, one graph after the other: it keeps memory in between.
class Mover {
 public:
  Mover(const MoveSettings& settings, const Loop& loop) : settings_(settings), loop_(loop) {}

  // Replaces the cluster of each node of the graph, which is one of 0 .. num_clusters - 1.
  void operator()(const Graph& graph, int64_t num_clusters, int32_t* cluster);

 private:
  // Where a node wants to go: lower changes are better. A change of 0 is no wish.
  struct Wish {
    int64_t change;
    int32_t to;
    double link;
  };

  struct alignas(32) Cluster {
    double cut, mass, ratio;  // ratio: cut / mass
  };

  void measure();
  void link_own(int64_t i);
  Wish wish_of(int64_t i, std::vector<Link>& links, Combiner& combine) const;
  bool before(int32_t i, int32_t j) const;
  void serve();
  void move(const int32_t* group, int64_t count);

  double weight(int64_t i) const { return graph_->node_weight[graph_->begin + i]; }

  const MoveSettings settings_;
  const Loop& loop_;
  const Graph* graph_ = nullptr;
  int32_t* cluster_ = nullptr;
  std::vector<double> degree_, own_;
  std::vector<Wish> wish_;
  LargeVector<Cluster> clusters_;
  std::vector<int32_t> moved_, wishing_, best_, group_;  // nodes
  std::vector<int8_t> changed_;                          // clusters whose cut or weight another iteration has changed
  std::vector<int8_t> stale_;                            // nodes that have to wish again
};

}  // namespace torch_gic
