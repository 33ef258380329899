#include "coarsening/rank.h"

#include <cstring>
#include <numeric>

namespace torch_gic {
namespace {

// Of the value in float32, as a number of 64 bits.
int64_t bits(double value) {
  const auto rounded = static_cast<float>(value);
  int32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return bits;
}

}  // namespace

void structural_rank(const Graph& graph, const double* influence, int64_t num_refinements, const Loop& loop,
                     int64_t* rank) {
  const int64_t size = graph.size(), base = graph.rowptr[graph.begin];
  std::vector<int64_t> color(size), next(size), of_weight(graph.rowptr[graph.end] - base);
  for_each(loop, size, [&](int64_t i) {
    color[i] = mix(bits(influence[graph.begin + i]));
    for (int64_t e = graph.rowptr[graph.begin + i]; e < graph.rowptr[graph.begin + i + 1]; ++e) {
      of_weight[e - base] = mix(bits(graph.weight[e]));
    }
  });
  for (int64_t t = 0; t < num_refinements; ++t) {
    for_each(loop, size, [&](int64_t i) {
      auto seen = static_cast<uint64_t>(color[i]);  // sums that may wrap around
      for (int64_t e = graph.rowptr[graph.begin + i]; e < graph.rowptr[graph.begin + i + 1]; ++e) {
        seen += static_cast<uint64_t>(mix(color[graph.col[e] - graph.begin] ^ of_weight[e - base]));
      }
      next[i] = mix(static_cast<int64_t>(seen));
    });
    color.swap(next);
  }
  std::vector<std::pair<int64_t, int32_t>> order(size);
  for (int64_t i = 0; i < size; ++i) order[i] = {color[i], static_cast<int32_t>(i)};
  std::sort(order.begin(), order.end());
  for (int64_t p = 0; p < size; ++p) rank[graph.begin + order[p].second] = p;
}

}  // namespace torch_gic
