#include "fields/extend_walks.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "common/vector.h"
#include "fields/strongest.h"

namespace torch_gic {
namespace {

// In a block of at most this many nodes, a table of all nodes costs less than a list of those that were reached.
constexpr int64_t kDense = 1024;

struct End {  // a node where walks from one node end
  int64_t node;
  double value;
};

template <typename T>
TORCH_GIC_INLINE T narrow(double value) {
  return T(std::min(value, double(std::numeric_limits<T>::max())));
}

// A value up to this becomes zero when it is converted to T.
template <typename T>
constexpr double kVanishing = double(std::numeric_limits<T>::denorm_min()) / 2;

// Walks side by side, as wide as two to four registers.
using Lanes = Simd<double, 64>;
constexpr int64_t kLanes = Lanes::kLanes;

// Adds one step from a node to the sums of its neighbours in the block.
TORCH_GIC_INLINE void dense_step(const Adjacency& a, const double* value, int64_t first, int64_t node,
                                 const Lanes::Vec& from, double* to) {
  for (int64_t e = a.rowptr[node]; e < a.rowptr[node + 1]; ++e) {
    double* sum = to + (a.col[e] - first) * kLanes;
    Lanes::store(sum, Lanes::load(sum) + from * value[e]);
  }
}

// The walks from the nodes start .. start + count - 1, in the block of n nodes that begins with 'first'. Table [k][j]
// holds the values of the walks that end at node j of the block after k + 1 steps, one start per lane.
template <typename T>
TORCH_GIC_INLINE void dense_rows(const Walks& walks, int64_t first, int64_t n, int64_t start, int64_t count,
                                 std::vector<double>& table, Reached<T>& reached) {
  using Vec = Lanes::Vec;
  const Adjacency& a = walks.adjacency;
  const int64_t scales = walks.num_scales, size = n * kLanes;
  table.assign((scales + 1) * size, 0.0);
  double* highest = table.data() + scales * size;  // over the scales
  for (int64_t k = 0; k < scales; ++k) {
    const double* value = walks.transition + k * a.col.size();
    double* to = table.data() + k * size;
    for (int64_t i = 0; k == 0 && i < count; ++i) {
      Vec one = {};
      one[i] = 1;
      dense_step(a, value, first, start + i, one, to);
    }
    // In the order of the nodes before the last step, so each sum has one order and one result.
    for (int64_t j = 0; k > 0 && j < n; ++j) {
      const Vec from = Lanes::load(to - size + j * kLanes);
      if (!Lanes::all_zero(from)) dense_step(a, value, first, first + j, from, to);
    }
    for (int64_t p = 0; p < size; ++p) {
      to[p] = std::min(to[p], kLargest);
      highest[p] = std::max(highest[p], to[p]);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t ends[kDense], found = 0;
    for (int64_t j = 0; j < n; ++j) {
      ends[found] = first + j;
      found += highest[j * kLanes + i] > kVanishing<T>;
    }
    reached.count.push_back(found);
    reached.col.insert(reached.col.end(), ends, ends + found);
    reached.weight.resize(reached.col.size() * scales);
    T* weight = reached.weight.data() + (reached.col.size() - found) * scales;
    for (int64_t p = 0; p < found; ++p) {
      const double* from = table.data() + (ends[p] - first) * kLanes + i;
      for (int64_t k = 0; k < scales; ++k) *weight++ = narrow<T>(from[k * size]);
    }
  }
}

template <typename T>
void dense_rows_any(const Walks& walks, int64_t first, int64_t n, int64_t start, int64_t count,
                    std::vector<double>& table, Reached<T>& reached) {
  dense_rows(walks, first, n, start, count, table, reached);
}

#if TORCH_GIC_X86
// Without FMA, which rounds differently from the reference.
template <typename T>
__attribute__((target("avx2"))) void dense_rows_avx2(const Walks& walks, int64_t first, int64_t n, int64_t start,
                                                     int64_t count, std::vector<double>& table, Reached<T>& reached) {
  dense_rows(walks, first, n, start, count, table, reached);
}
#endif

// The walks from one node at a time, as lists of the nodes that they reach.
template <typename T>
class SparseRows {
 public:
  SparseRows(const Walks& walks, Reached<T>& reached) : walks_(walks), reached_(reached), ends_(walks.num_scales) {}

  void add(int64_t start, int64_t first, int64_t n) {  // a node of the block of n nodes from 'first' on
    if (int64_t(slot_.size()) < n) slot_.resize(n, kUnseen);
    for (int64_t k = 0; k < walks_.num_scales; ++k) step(k, start, first);
    add_row(first);
  }

 private:
  static constexpr int32_t kUnseen = -1;
  static constexpr size_t kAhead = 4;  // nodes whose edges are prefetched

  void step(int64_t k, int64_t start, int64_t first) {
    const Adjacency& a = walks_.adjacency;
    const double* value = walks_.transition + k * a.col.size();
    auto& ends = ends_[k];
    ends.clear();
    const auto extend = [&](const End& from) {
      for (int64_t e = a.rowptr[from.node]; e < a.rowptr[from.node + 1]; ++e) {
        int32_t& slot = slot_[a.col[e] - first];
        if (slot == kUnseen) {
          slot = ends.size();
          ends.push_back({a.col[e], 0.0});
        }
        ends[slot].value += from.value * value[e];
      }
    };
    if (k == 0) {
      extend({start, 1.0});
    } else {
      const auto& before = ends_[k - 1];
      for (size_t p = 0; p < before.size(); ++p) {
        if (p + 2 * kAhead < before.size()) __builtin_prefetch(&a.rowptr[before[p + 2 * kAhead].node]);
        if (p + kAhead < before.size()) {
          const int64_t e = a.rowptr[before[p + kAhead].node];
          __builtin_prefetch(a.col.data() + e);
          __builtin_prefetch(value + e);
        }
        if (p + 1 < before.size()) {
          const int64_t next = before[p + 1].node;
          for (int64_t e = a.rowptr[next]; e < a.rowptr[next + 1]; ++e) __builtin_prefetch(&slot_[a.col[e] - first]);
        }
        extend(before[p]);
      }
    }
    for (End& end : ends) {
      slot_[end.node - first] = kUnseen;
      end.value = std::min(end.value, kLargest);
    }
    const auto node = [](const End& end) { return end.node; };
    strongest(ends, walks_.max_neighbors, [](const End& end) { return end.value; }, node);
  }

  // All nodes that are reached in any scale, with their value in every scale.
  void add_row(int64_t first) {
    const int64_t scales = walks_.num_scales;
    members_.clear();
    row_.clear();
    for (int64_t k = 0; k < scales; ++k) {
      for (const End& end : ends_[k]) {
        int32_t& slot = slot_[end.node - first];
        if (slot == kUnseen) {
          slot = members_.size();
          members_.push_back({end.node, slot});
          row_.resize(row_.size() + scales, 0.0);
        }
        row_[slot * scales + k] = end.value;
      }
    }
    for (const Member& member : members_) slot_[member.node - first] = kUnseen;
    const auto total = [&](const Member& member) {
      const double* value = &row_[member.slot * scales];
      return std::accumulate(value, value + scales, 0.0);
    };
    strongest(members_, walks_.max_neighbors, total, [](const Member& member) { return member.node; });
    int64_t count = 0;
    for (const Member& member : members_) {
      const double* value = &row_[member.slot * scales];
      if (!std::any_of(value, value + scales, [](double v) { return v > kVanishing<T>; })) continue;
      reached_.col.push_back(member.node);
      std::transform(value, value + scales, std::back_inserter(reached_.weight), [](double v) { return narrow<T>(v); });
      ++count;
    }
    reached_.count.push_back(count);
  }

  struct Member {
    int64_t node, slot;  // slot: the place of its values in row_
  };

  const Walks& walks_;
  Reached<T>& reached_;
  std::vector<std::vector<End>> ends_;  // of each scale
  std::vector<Member> members_;
  std::vector<double> row_;
  LargeVector<int32_t> slot_;  // the place of each node of the block among those that were reached
};

}  // namespace

template <typename T>
void extend_walks(const Walks& walks, int64_t begin, int64_t end, Reached<T>& reached) {
#if TORCH_GIC_X86
  const auto kernel = __builtin_cpu_supports("avx2") ? dense_rows_avx2<T> : dense_rows_any<T>;
#else
  const auto kernel = dense_rows_any<T>;
#endif
  std::vector<double> table;
  SparseRows<T> rows(walks, reached);
  auto block = std::upper_bound(walks.blocks.begin(), walks.blocks.end(), begin) - 1;
  for (; begin < end; ++block) {
    const int64_t first = block[0], n = block[1] - block[0];
    const int64_t stop = std::min(block[1], end);
    if (n <= std::min(kDense, walks.max_neighbors)) {
      for (; begin < stop; begin += kLanes) {
        kernel(walks, first, n, begin, std::min(kLanes, stop - begin), table, reached);
      }
      begin = stop;
    } else {
      for (; begin < stop; ++begin) rows.add(begin, first, n);
    }
  }
}

template void extend_walks(const Walks&, int64_t, int64_t, Reached<float>&);
template void extend_walks(const Walks&, int64_t, int64_t, Reached<double>&);

}  // namespace torch_gic
