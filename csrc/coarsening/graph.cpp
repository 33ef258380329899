#include "coarsening/graph.h"

#include <numeric>

namespace torch_gic {

template <typename T>
UndirectedGraphs undirected_graphs(const int64_t* source, const int64_t* target, const T* weight, int64_t num_edges,
                                   const int64_t* batch, int64_t num_nodes, int64_t num_graphs, const Loop& loop) {
  const auto weight_of = [&](int64_t e) { return weight == nullptr ? 1.0 : static_cast<double>(weight[e]); };
  std::vector<double> heaviest(num_graphs, 0);
  UndirectedGraphs graphs;
  graphs.start.assign(num_nodes + 1, 0);
  for (int64_t e = 0; e < num_edges; ++e) {
    if (!(weight_of(e) > 0)) continue;
    double& largest = heaviest[batch[source[e]]];
    largest = std::max(largest, weight_of(e));
    ++graphs.start[source[e] + 1];
    ++graphs.start[target[e] + 1];
  }
  std::partial_sum(graphs.start.begin(), graphs.start.end(), graphs.start.begin());
  std::vector<int64_t> next(graphs.start.begin(), graphs.start.end() - 1);
  graphs.entries.resize(graphs.start.back());
  for (const auto& [from, to] : {std::pair(source, target), std::pair(target, source)}) {
    for (int64_t e = 0; e < num_edges; ++e) {
      if (!(weight_of(e) > 0)) continue;
      graphs.entries[next[from[e]]++] = {static_cast<int32_t>(to[e]), weight_of(e) / heaviest[batch[source[e]]] / 2};
    }
  }
  graphs.count.resize(num_nodes);
  graphs.degree.assign(num_nodes, 0);
  loop(num_nodes, [&](Blocks& blocks) {
    Combiner combine(num_nodes);
    for (int64_t i, last; blocks.next(i, last);) {
      for (; i < last; ++i) {
        Link* row = graphs.entries.data() + graphs.start[i];
        graphs.count[i] = combine(row, graphs.start[i + 1] - graphs.start[i]);
        for (int64_t k = 0; k < graphs.count[i]; ++k) graphs.degree[i] += row[k].second;
      }
    }
  });
  return graphs;
}

template UndirectedGraphs undirected_graphs(const int64_t*, const int64_t*, const float*, int64_t, const int64_t*,
                                            int64_t, int64_t, const Loop&);
template UndirectedGraphs undirected_graphs(const int64_t*, const int64_t*, const double*, int64_t, const int64_t*,
                                            int64_t, int64_t, const Loop&);

void node_weights(const UndirectedGraphs& graphs, const double* influence, bool by_degree, const int64_t* ptr,
                  int64_t num_graphs, double* node_weight) {
  for (int64_t g = 0; g < num_graphs; ++g) {
    double total = 0;
    int64_t count = 0;
    for (int64_t i = ptr[g]; by_degree && i < ptr[g + 1]; ++i) {
      for (int64_t k = 0; k < graphs.count[i]; ++k) total += graphs.entries[graphs.start[i] + k].second;
      count += graphs.count[i];
    }
    const double mean = count > 0 ? total / static_cast<double>(count) : 1;
    for (int64_t i = ptr[g]; i < ptr[g + 1]; ++i) {
      node_weight[i] = influence[i];
      if (by_degree) node_weight[i] *= graphs.degree[i] > 0 ? graphs.degree[i] : mean;
    }
  }
}

}  // namespace torch_gic
