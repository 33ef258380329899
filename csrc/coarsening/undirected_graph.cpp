#include "coarsening/undirected_graph.h"

#include <cstring>
#include <numeric>

namespace torch_gic {

template <typename T>
UndirectedGraph undirected_graph(const int64_t* source, const int64_t* target, const T* weight, int64_t num_edges,
                                 const int64_t* batch, int64_t num_nodes, int64_t num_graphs, const Loop& loop) {
  std::vector<double> heaviest(num_graphs, 0);
  std::vector<int64_t> start(num_nodes + 1, 0), count(num_nodes);
  for (int64_t e = 0; e < num_edges; ++e) {
    if (!(weight[e] > 0)) continue;
    double& largest = heaviest[batch[source[e]]];
    largest = std::max(largest, double(weight[e]));
    ++start[source[e] + 1];
    ++start[target[e] + 1];
  }
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<int64_t> next(start.begin(), start.end() - 1);
  std::vector<Link> entries(start.back());
  for (const auto& [from, to] : {std::pair(source, target), std::pair(target, source)}) {
    for (int64_t e = 0; e < num_edges; ++e) {
      if (!(weight[e] > 0)) continue;
      entries[next[from[e]]++] = {static_cast<int32_t>(to[e]), double(weight[e]) / heaviest[batch[source[e]]] / 2};
    }
  }

  UndirectedGraph graph;
  graph.degree.assign(num_nodes, 0);
  loop(num_nodes, [&](int64_t first, int64_t last) {
    Combiner combine(num_nodes);
    for (int64_t i = first; i < last; ++i) {
      count[i] = combine(entries.data() + start[i], start[i + 1] - start[i]);
      for (int64_t k = 0; k < count[i]; ++k) graph.degree[i] += entries[start[i] + k].second;
    }
  });
  graph.rowptr.assign(num_nodes + 1, 0);
  std::partial_sum(count.begin(), count.end(), graph.rowptr.begin() + 1);
  graph.entries.resize(graph.rowptr.back());
  loop(num_nodes, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      std::copy_n(entries.begin() + start[i], count[i], graph.entries.begin() + graph.rowptr[i]);
    }
  });
  return graph;
}

template UndirectedGraph undirected_graph(const int64_t*, const int64_t*, const float*, int64_t, const int64_t*,
                                          int64_t, int64_t, const Loop&);
template UndirectedGraph undirected_graph(const int64_t*, const int64_t*, const double*, int64_t, const int64_t*,
                                          int64_t, int64_t, const Loop&);

namespace {

constexpr int kRefinements = 8;

// Of the value in float32, as a number of 64 bits.
int64_t bits(double value) {
  const auto rounded = static_cast<float>(value);
  int32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return bits;
}

}  // namespace

void structural_rank(const ClusterGraph& graphs, const double* influence, const int64_t* ptr, int64_t num_graphs,
                     const Loop& loop, int64_t* rank) {
  std::vector<int64_t> color(graphs.size()), next(graphs.size()), of_weight(graphs.rowptr[graphs.size()]);
  loop(graphs.size(), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) color[i] = mix(bits(influence[i]));
    for (int64_t e = graphs.rowptr[first]; e < graphs.rowptr[last]; ++e) of_weight[e] = mix(bits(graphs.weight[e]));
  });
  for (int t = 0; t < kRefinements; ++t) {
    loop(graphs.size(), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        auto seen = static_cast<uint64_t>(color[i]);  // sums that may wrap around
        for (int64_t e = graphs.rowptr[i]; e < graphs.rowptr[i + 1]; ++e) {
          seen += static_cast<uint64_t>(mix(color[graphs.col[e]] ^ of_weight[e]));
        }
        next[i] = mix(static_cast<int64_t>(seen));
      }
    });
    color.swap(next);
  }
  std::vector<int64_t> order(graphs.size());
  std::iota(order.begin(), order.end(), 0);
  for (int64_t g = 0; g < num_graphs; ++g) {
    std::sort(order.begin() + ptr[g], order.begin() + ptr[g + 1],
              [&](int64_t i, int64_t j) { return color[i] != color[j] ? color[i] < color[j] : i < j; });
    for (int64_t p = ptr[g]; p < ptr[g + 1]; ++p) rank[order[p]] = p - ptr[g];
  }
}

}  // namespace torch_gic
