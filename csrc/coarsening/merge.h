// Stage 3 of coarsening, merging: see torch_gic/coarsening/merge.py, whose results these are. No torch headers.
#pragma once

#include <limits>

#include "coarsening/level.h"

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
  static constexpr int32_t kNobody = -1, kUnknown = -2;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // Whom a cluster prefers, and how good that is: lower is better.
  struct Preference {
    int32_t partner;  // or kNobody, or kUnknown
    int64_t change, tie;

    bool asks() const { return partner >= 0; }
    bool operator<(const Preference& other) const {
      return change != other.change ? change < other.change : tie < other.tie;
    }
  };

  int64_t change(int64_t a, int64_t e) const;
  Preference prefer(int64_t a, int64_t e, int64_t change) const;
  void prefer(int64_t a, std::vector<int64_t>& changes);
  bool join(int64_t excess, int64_t round);
  void accept(int64_t excess);
  void pair_up(int64_t excess);
  void contract(int32_t size);
  void number(int64_t num_clusters, int64_t num_nodes, int32_t* cluster);

  const MergeSettings settings_;
  const Loop& loop_;
  Level level_, next_;
  Contraction contract_;
  LargeVector<Preference> preference_, next_preference_;
  LargeVector<int8_t> keeps_, stays_;
  LargeVector<int32_t> target_, label_, of_;
  LargeVector<int32_t> joining_;
  std::vector<int64_t> place_;
};

}  // namespace torch_gic
