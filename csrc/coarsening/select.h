// Stage 5 of coarsening: all stages of one graph, one after the other. See torch_gic/coarsening/select.py. No torch
// headers.
#pragma once

#include "coarsening/fill.h"
#include "coarsening/merge.h"
#include "coarsening/move.h"
#include "coarsening/rank.h"
#include "coarsening/refine.h"

namespace torch_gic {

struct Settings {
  MergeSettings merge;
  MoveSettings move;
  RefineSettings refine;    // in place of moving, if there is a largest size
  int64_t num_refinements;  // of the ranks
};

// Selects the clusters of graphs, one graph after the other: it keeps memory in between.
class Selector {
 public:
  Selector(const Settings& settings, const Loop& loop)
      : settings_(settings), loop_(loop), merge_(settings.merge, loop), move_(settings.move, loop) {}

  // Writes the rank and the cluster of each node of the graph. Clusters are numbered from 'first' on. With a start,
  // those are moved and nothing is merged.
  void operator()(const Graph& graph, const double* influence, int64_t first, int64_t num_clusters,
                  const int64_t* start, int64_t* rank, int64_t* cluster) {
    structural_rank(graph, influence, settings_.num_refinements, loop_, rank);
    of_.resize(graph.size());
    const int64_t max_size = settings_.merge.max_size;
    if (start == nullptr) {
      merge_(graph, num_clusters, of_.data());
      fill_clusters(graph, num_clusters, max_size > 0 ? max_size : graph.size(), of_.data());
    } else {
      for (int64_t i = 0; i < graph.size(); ++i) of_[i] = static_cast<int32_t>(start[graph.begin + i] - first);
    }
    if (max_size > 0) {
      refine_clusters(graph, settings_.refine, num_clusters, of_.data());
    } else {
      move_(graph, num_clusters, of_.data());
    }
    for (int64_t i = 0; i < graph.size(); ++i) cluster[graph.begin + i] = first + of_[i];
  }

 private:
  const Settings settings_;
  const Loop& loop_;
  Merger merge_;
  Mover move_;
  std::vector<int32_t> of_;
};

}  // namespace torch_gic
