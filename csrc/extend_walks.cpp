#include "extend_walks.h"

#include <algorithm>

namespace torch_gic {
namespace {

struct End {  // of the walks from one vertex
  int64_t vertex;
  double value;
};

}  // namespace

void extend_walks(const Walks& walks, int64_t begin, int64_t end, Reached& reached) {
  const int64_t scales = walks.num_scales;
  std::vector<double> sum(walks.num_nodes, 0.0);
  std::vector<char> seen(walks.num_nodes, 0);
  std::vector<int64_t> touched, positions, slot(walks.num_nodes);
  std::vector<std::vector<End>> ends(scales);

  for (int64_t start = begin; start < end; ++start) {
    for (int64_t k = 0; k < scales; ++k) {
      // One more step. Ends are visited in the order of their vertices, so that sums have one order, and one result.
      const double* value = walks.transition + k * walks.num_entries;
      touched.clear();
      const auto step = [&](const End& from) {
        for (int64_t e = walks.rowptr[from.vertex]; e < walks.rowptr[from.vertex + 1]; ++e) {
          const int64_t to = walks.col[e];
          if (!seen[to]) {
            seen[to] = 1;
            touched.push_back(to);
          }
          sum[to] += from.value * value[e];
        }
      };
      if (k == 0) {
        step({start, 1.0});
      } else {
        for (const End& from : ends[k - 1]) step(from);
      }
      std::sort(touched.begin(), touched.end());
      ends[k].clear();
      for (const int64_t to : touched) {
        ends[k].push_back({to, sum[to]});
        sum[to] = 0;
        seen[to] = 0;
      }
      if (walks.max_neighbors > 0 && int64_t(ends[k].size()) > walks.max_neighbors) {
        std::stable_sort(ends[k].begin(), ends[k].end(), [](const End& a, const End& b) { return a.value > b.value; });
        ends[k].resize(walks.max_neighbors);
        std::sort(ends[k].begin(), ends[k].end(), [](const End& a, const End& b) { return a.vertex < b.vertex; });
      }
    }

    // All vertices that some scale reaches, and the weight of each in every scale.
    positions.clear();
    for (const auto& scale : ends) {
      for (const End& reach : scale) {
        if (!seen[reach.vertex]) {
          seen[reach.vertex] = 1;
          positions.push_back(reach.vertex);
        }
      }
    }
    std::sort(positions.begin(), positions.end());
    const int64_t base = reached.col.size(), count = positions.size();
    reached.count.push_back(count);
    reached.col.insert(reached.col.end(), positions.begin(), positions.end());
    reached.weight.resize((base + count) * scales, 0.0);
    for (int64_t p = 0; p < count; ++p) {
      slot[positions[p]] = base + p;
      seen[positions[p]] = 0;
    }
    for (int64_t k = 0; k < scales; ++k) {
      for (const End& reach : ends[k]) reached.weight[slot[reach.vertex] * scales + k] = reach.value;
    }
  }
}

}  // namespace torch_gic
