// The clusters of one round of merging, and how they become those of the next. No torch headers.
#pragma once

#include "coarsening/graph.h"
#include "common/large_pages.h"

namespace torch_gic {

struct Level {
  // The cut of a cluster, its weight and their quotient; the lowest rank of its nodes.
  struct alignas(32) Cluster {
    double cut, mass, ratio;
    int64_t key;
  };

  LargeVector<Cluster> clusters;
  LargeVector<int32_t> count;       // of the nodes of each cluster
  LargeVector<int8_t> changed;      // clusters that others have joined in the last round
  LargeVector<int64_t> start, end;  // of the row of links of each cluster, with gaps behind the rows
  UnwrittenVector<Link> links;      // sorted by the other end

  int64_t size() const { return static_cast<int64_t>(clusters.size()); }
  void set(const Graph& graph, const Loop& loop);
  void sum_row(int64_t r);
};

// Where a cluster goes: the number of its next one, as it is if it stays, or flipped if it joins another.
inline bool joins(int32_t label) { return label < 0; }
inline int32_t number_of(int32_t label) { return label < 0 ? ~label : label; }

// Makes the next level: it keeps memory between calls. The numbers of clusters that stay have to rise.
class Contraction {
 public:
  void operator()(const Level& level, const LargeVector<int32_t>& label, int64_t size, const Loop& loop, Level& next);

  // The only member of cluster r of the next level, or -1 if it has several.
  int64_t only_member(int64_t r) const { return begin_[r + 1] - begin_[r] == 1 ? member_[begin_[r]] : -1; }

 private:
  // A link whose other end has joined another cluster, and how many of the others stand before it.
  struct Renamed {
    int32_t to;
    int32_t place;
    double weight;
  };

  // The links of one row on their way, for each thread.
  struct Scratch {
    explicit Scratch(int64_t size) : combine(size) {}
    Combiner combine;
    std::vector<Renamed> renamed;
    std::vector<Link> kept;
  };

  void gather(const Level& level, const LargeVector<int32_t>& label, int64_t size, Level& next);
  static int64_t rename(const Link* begin, const Link* end, const Link* last, const LargeVector<int32_t>& label,
                        Scratch& scratch, Link* row);
  static int64_t weave(Scratch& scratch, Link* row, int64_t count);

  LargeVector<int64_t> begin_, place_;  // of the members of each cluster of the next level
  LargeVector<int32_t> member_;
};

}  // namespace torch_gic
