#include "coarsening/responsibility.h"

#include <limits>

namespace torch_gic {

void responsibility(const Graph& graph, const int64_t* cluster, int64_t first_cluster, int64_t num_clusters,
                    double beta, const double* gradient, double* result) {
  const int64_t size = graph.size();
  const int64_t* of = cluster + graph.begin;
  const double* w = graph.node_weight + graph.begin;
  std::vector<double> cut(num_clusters, 0), mass(num_clusters, 0), log_count(num_clusters, 0), to_mass(num_clusters, 0);
  double shift = 0;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t a = of[i] - first_cluster;
    double degree = 0;
    for (int64_t e = graph.rowptr[graph.begin + i]; e < graph.rowptr[graph.begin + i + 1]; ++e) {
      degree += graph.weight[e];
      if (of[graph.col[e] - graph.begin] != of[i]) cut[a] += graph.weight[e];
    }
    shift = std::max(shift, degree / w[i]);
    mass[a] += w[i];
    log_count[a] += 1;
  }
  for (double& count : log_count) count = std::log(count);

  Combiner combine(num_clusters);
  std::vector<Link> links;
  std::vector<double> p;
  for (int64_t i = 0; i < size; ++i) {
    links.assign(1, {static_cast<int32_t>(of[i] - first_cluster), 0});  // the first is its own cluster
    double degree = 0;
    graph.each_neighbor(i, [&](int64_t j, double weight) {
      links.push_back({static_cast<int32_t>(of[j] - first_cluster), weight});
      degree += weight;
    });
    const int64_t count = combine.unsorted(links.data(), static_cast<int64_t>(links.size()));
    p.resize(count);
    // What a cluster is linked by, seen from node i, and what follows from its weight.
    const auto linked = [&](int64_t k) {
      return links[k].second - shift * w[i] + (k == 0 ? 2 * shift * w[i] - degree : 0);
    };
    double highest = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int32_t c = links[k].first;
      p[k] = log_count[c] + beta / mass[c] * (linked(k) + w[i] * cut[c] / (2 * mass[c]));
      highest = std::max(highest, p[k]);
    }
    for (double& value : p) total += value = std::exp(value - highest);
    for (double& value : p) value /= total;
    if (gradient == nullptr) {
      result[graph.begin + i] = p[0];
      continue;
    }
    double to_weight = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int32_t c = links[k].first;
      const double to_exponent = gradient[graph.begin + i] * p[0] * ((k == 0 ? 1 : 0) - p[k]) * beta / mass[c];
      to_weight += to_exponent * ((k == 0 ? shift : -shift) + cut[c] / (2 * mass[c]));
      to_mass[c] -= to_exponent / mass[c] * (linked(k) + w[i] * cut[c] / mass[c]);
    }
    result[graph.begin + i] = to_weight;
  }
  for (int64_t i = 0; gradient != nullptr && i < size; ++i) result[graph.begin + i] += to_mass[of[i] - first_cluster];
}

}  // namespace torch_gic
