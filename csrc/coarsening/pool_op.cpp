// What becomes of features and edges when nodes become clusters: the largest of each channel, and the edges between
// clusters.
#include <torch/csrc/stable/ops.h>

#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "coarsening/combine.h"
#include "common/check.h"
#include "common/ops.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

void check_clusters(const Tensor& cluster, int64_t num_clusters) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  STD_TORCH_CHECK(num_clusters >= 0 && num_clusters <= most, "Expected 'num_clusters' to lie in [0, ", most, "] (got ",
                  num_clusters, ")");
  check_range(cluster, "cluster", num_clusters);
}

void check_nodes(const Tensor& x, const Tensor& cluster, int64_t num_clusters) {
  STD_TORCH_CHECK(x.scalar_type() == ScalarType::Float || x.scalar_type() == ScalarType::Double,
                  "Expected 'x' to hold float32 or float64 values");
  check_tensor(x, "x", 2, x.scalar_type());
  check_tensor(cluster, "cluster", 1, ScalarType::Long);
  check_size(cluster, "cluster", 0, x.size(0));
  check_clusters(cluster, num_clusters);
}

template <typename T>
void largest(const T* x, const int64_t* cluster, int64_t num_nodes, int64_t num_clusters, int64_t channels, T* out) {
  std::vector<bool> seen(num_clusters, false);
  std::fill(out, out + num_clusters * channels, T{0});
  for (int64_t i = 0; i < num_nodes; ++i) {
    const T* __restrict from = x + i * channels;
    T* __restrict to = out + cluster[i] * channels;
    if (!seen[cluster[i]]) {
      seen[cluster[i]] = true;
      std::copy_n(from, channels, to);
      continue;
    }
    for (int64_t f = 0; f < channels; ++f) {  // without branches, and keeps a NaN
      const T one = from[f], other = to[f];
      to[f] = (one <= other) | (other != other) ? other : one;
    }
  }
}

template <typename T>
void largest_backward(const T* grad, const T* x, const T* out, const int64_t* cluster, int64_t num_nodes,
                      int64_t num_clusters, int64_t channels, T* to_x) {
  std::vector<T> share(num_clusters * channels, 0);  // how many nodes hold the largest, then what each of them gets
  for (int64_t i = 0; i < num_nodes; ++i) {
    const T* __restrict from = x + i * channels, * __restrict most = out + cluster[i] * channels;
    T* __restrict count = share.data() + cluster[i] * channels;
    for (int64_t f = 0; f < channels; ++f) count[f] += from[f] == most[f] ? T{1} : T{0};
  }
  for (int64_t k = 0; k < num_clusters * channels; ++k) share[k] = grad[k] / std::max(share[k], T{1});
  for (int64_t i = 0; i < num_nodes; ++i) {
    const T* __restrict from = x + i * channels, * __restrict most = out + cluster[i] * channels;
    const T* __restrict part = share.data() + cluster[i] * channels;
    T* __restrict to = to_x + i * channels;
    for (int64_t f = 0; f < channels; ++f) {
      const T gets = part[f];
      to[f] = from[f] == most[f] ? gets : T{0};
    }
  }
}

}  // namespace

Tensor cluster_max_cpu(Tensor x, Tensor cluster, int64_t num_clusters) {
  cluster = torch::stable::contiguous(cluster);
  check_nodes(x, cluster, num_clusters);
  x = torch::stable::contiguous(x);
  Tensor out = torch::stable::new_empty(x, {num_clusters, x.size(1)});
  const auto run = [&]<typename T>(T) {
    largest(x.const_data_ptr<T>(), cluster.const_data_ptr<int64_t>(), x.size(0), num_clusters, x.size(1),
            out.mutable_data_ptr<T>());
  };
  x.scalar_type() == ScalarType::Float ? run(float{}) : run(double{});
  return out;
}

Tensor cluster_max_backward_cpu(Tensor grad, Tensor x, Tensor out, Tensor cluster) {
  check_tensor(out, "out", 2, x.scalar_type());
  const int64_t num_clusters = out.size(0);
  cluster = torch::stable::contiguous(cluster);
  check_nodes(x, cluster, num_clusters);
  for (const auto& [tensor, name] : {std::pair(&grad, "grad"), std::pair(&out, "out")}) {
    check_tensor(*tensor, name, 2, x.scalar_type());
    check_size(*tensor, name, 0, num_clusters);
    check_size(*tensor, name, 1, x.size(1));
    *tensor = torch::stable::contiguous(*tensor);
  }
  x = torch::stable::contiguous(x);
  Tensor to_x = torch::stable::empty_like(x);
  const auto run = [&]<typename T>(T) {
    largest_backward(grad.const_data_ptr<T>(), x.const_data_ptr<T>(), out.const_data_ptr<T>(),
                     cluster.const_data_ptr<int64_t>(), x.size(0), num_clusters, x.size(1), to_x.mutable_data_ptr<T>());
  };
  x.scalar_type() == ScalarType::Float ? run(float{}) : run(double{});
  return to_x;
}

std::tuple<Tensor, Tensor> cluster_edges_cpu(Tensor edge_index, Tensor cluster, int64_t num_clusters) {
  check_tensor(edge_index, "edge_index", 2, ScalarType::Long);
  check_size(edge_index, "edge_index", 0, 2);
  check_tensor(cluster, "cluster", 1, ScalarType::Long);
  edge_index = torch::stable::contiguous(edge_index);
  cluster = torch::stable::contiguous(cluster);
  const int64_t num_edges = edge_index.size(1);
  check_range(edge_index, "edge_index", cluster.numel());
  check_clusters(cluster, num_clusters);
  const auto *source = edge_index.const_data_ptr<int64_t>(), *target = source + num_edges;
  const auto* of = cluster.const_data_ptr<int64_t>();
  // Edges by their source, then the targets of each source once: the second element of a link is the number of the
  // edge.
  std::vector<int64_t> start(num_clusters + 1, 0);
  for (int64_t e = 0; e < num_edges; ++e) ++start[of[source[e]] + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<int64_t> next(start.begin(), start.end() - 1);
  std::vector<std::pair<int64_t, int64_t>> ends(num_edges);  // cluster of the target, edge
  for (int64_t e = 0; e < num_edges; ++e) ends[next[of[source[e]]]++] = {of[target[e]], e};
  Tensor position = torch::stable::new_empty(edge_index, {num_edges});
  auto* positions = position.mutable_data_ptr<int64_t>();
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t c = 0; c < num_clusters; ++c) {
    std::sort(ends.begin() + start[c], ends.begin() + start[c + 1]);
    for (int64_t k = start[c]; k < start[c + 1]; ++k) {
      if (k == start[c] || ends[k].first != ends[k - 1].first) pairs.push_back({c, ends[k].first});
      positions[ends[k].second] = static_cast<int64_t>(pairs.size()) - 1;
    }
  }
  const auto count = static_cast<int64_t>(pairs.size());
  Tensor coarse = torch::stable::new_empty(edge_index, {2, count});
  auto* ends_to = coarse.mutable_data_ptr<int64_t>();
  for (int64_t k = 0; k < count; ++k) std::tie(ends_to[k], ends_to[count + k]) = pairs[k];
  return {coarse, position};
}

}  // namespace torch_gic
