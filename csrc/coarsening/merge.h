// Stage 3 of coarsening, merging: see torch_gic/coarsening/merge.py, whose results these are. No torch headers.
#pragma once

#include "coarsening/graph.h"
#include "common/large_pages.h"

namespace torch_gic {

struct MergeSettings {
  double rounding;   // relative errors that decide nothing
  int64_t max_size;  // of a cluster in nodes; 0: any
};

// Merges graphs, one after the other: it keeps memory in between.
class Merger {
 public:
  Merger(const MergeSettings& settings, const Loop& loop) : settings_(settings), loop_(loop) {}

  // Writes the cluster of each node of the graph, from 0 on; with a max_size, -1 for nodes that are left over.
  void operator()(const Graph& graph, int64_t num_clusters, int32_t* cluster);

 private:
  // A cluster of a round: its cut, its weight and their quotient; the lowest rank of its nodes.
  struct alignas(32) Cluster {
    double cut, mass, ratio;
    int64_t key;
  };

  // Whom a cluster prefers, and how good that is: lower is better.
  struct Preference {
    int32_t partner;  // -1: nobody
    int64_t change, tie;

    bool asks() const { return partner >= 0; }
    bool operator<(const Preference& other) const {
      return change != other.change ? change < other.change : tie < other.tie;
    }
  };

  // The clusters of a round, and the links between them: a row of each, with gaps behind the rows, sorted by the other
  // end.
  struct Level {
    LargeVector<Cluster> clusters;
    std::vector<int64_t> count;       // of the nodes of each cluster
    std::vector<int64_t> start, end;  // of each row
    std::vector<Link> links;

    int64_t size() const { return static_cast<int64_t>(clusters.size()); }
  };

  void set_first_level(const Graph& graph);
  void prefer(int64_t a);
  bool join(int64_t excess, int64_t round);
  void accept(int64_t excess);
  void pair_up(int64_t excess);
  void contract(int64_t size);
  void sum_row(Level& level, int64_t r) const;
  void number(int64_t num_clusters, int64_t num_nodes, int32_t* cluster);

  const MergeSettings settings_;
  const Loop& loop_;
  Level level_, next_;
  std::vector<Preference> preference_;
  std::vector<int8_t> keeps_, stays_;
  std::vector<int32_t> target_, label_, of_;
  std::vector<int32_t> joining_, member_;
  std::vector<int64_t> place_, begin_;
};

}  // namespace torch_gic
