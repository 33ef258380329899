// Operator side of adjacency_powers: checks, memory, threads, and the order of the stages.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "common/check.h"
#include "common/large_pages.h"
#include "common/ops.h"
#include "common/parallel.h"
#include "fields/extend_walks.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

constexpr int64_t kRowsOfThread = 1024;

Degrees all_degrees(const Adjacency& adjacency, int64_t num_scales, const std::optional<Tensor>& given) {
  if (given) return Degrees(adjacency.num_nodes, num_scales, given->const_data_ptr<double>());
  Degrees degrees(adjacency.num_nodes, num_scales);
  for (int64_t k = 1; k <= num_scales; ++k) {
    parallel_for(0, adjacency.num_nodes, kRowsOfThread,
                 [&](int64_t begin, int64_t end) { degrees.step(adjacency, k, begin, end); });
  }
  return degrees;
}

LargeVector<double> transitions(const Adjacency& adjacency, const Degrees& degrees, int64_t num_scales) {
  LargeVector<double> value(num_scales * adjacency.col.size());
  parallel_for(0, adjacency.num_nodes, kRowsOfThread, [&](int64_t begin, int64_t end) {
    for (int64_t k = 1; k <= num_scales; ++k) {
      transition(adjacency, degrees, k, begin, end, value.data() + (k - 1) * adjacency.col.size());
    }
  });
  return value;
}

template <typename T>
std::tuple<Tensor, Tensor> powers(const Tensor& row, const Tensor& col, const Tensor& weight, int64_t num_nodes,
                                  int64_t num_scales, std::optional<int64_t> max_neighbors,
                                  const std::optional<Tensor>& degree) {
  Adjacency adjacency(row.const_data_ptr<int64_t>(), col.const_data_ptr<int64_t>(), weight.const_data_ptr<T>(),
                      row.numel(), num_nodes);
  const Degrees degrees = all_degrees(adjacency, num_scales, degree);
  if (max_neighbors) adjacency.keep_strongest(transitions(adjacency, degrees, 1), *max_neighbors);
  const auto value = transitions(adjacency, degrees, num_scales);
  const auto blocks = adjacency.blocks();
  const Walks walks{adjacency, blocks, num_scales, max_neighbors.value_or(num_nodes), value.data()};

  const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(64, num_nodes / 64));
  std::vector<Reached<T>> reached(parts);
  for_each_part(parts, [&](int64_t part) {
    extend_walks(walks, num_nodes * part / parts, num_nodes * (part + 1) / parts, reached[part]);
  });

  std::vector<int64_t> offset{0};
  for (const auto& part : reached) offset.push_back(offset.back() + part.col.size());
  Tensor field_index = torch::stable::new_empty(row, {2, offset.back()});
  Tensor field_weight = torch::stable::new_empty(weight, {offset.back(), num_scales});
  auto* to_col = field_index.mutable_data_ptr<int64_t>();
  auto* to_row = to_col + offset.back();
  auto* to_weight = field_weight.mutable_data_ptr<T>();
  use_large_pages(to_col, field_index.numel() * sizeof(int64_t));
  use_large_pages(to_weight, field_weight.numel() * sizeof(T));
  for_each_part(parts, [&](int64_t part) {
    int64_t node = num_nodes * part / parts;
    auto* r = to_row + offset[part];
    for (const int64_t count : reached[part].count) r = std::fill_n(r, count, node++);
    std::copy(reached[part].col.begin(), reached[part].col.end(), to_col + offset[part]);
    std::copy(reached[part].weight.begin(), reached[part].weight.end(), to_weight + offset[part] * num_scales);
  });
  return {field_index, field_weight};
}

// A compiled model cannot check values, so they are checked here.
void check_weights(const Tensor& weight) {
  const auto all_right = [&]<typename T>(T most) {
    const T* values = weight.const_data_ptr<T>();
    const int64_t count = weight.numel();
    bool wrong = false;
    for (int64_t k = 0; k < count; ++k) wrong |= !(values[k] >= 0 && values[k] <= most);  // also for NaN
    return !wrong;
  };
  STD_TORCH_CHECK(weight.scalar_type() == ScalarType::Float ? all_right(std::numeric_limits<float>::max())
                                                            : all_right(std::numeric_limits<double>::max()),
                  "Expected 'weight' to be finite and non-negative (got other values)");
}

}  // namespace

std::tuple<Tensor, Tensor> adjacency_powers_cpu(Tensor row, Tensor col, Tensor weight, int64_t num_nodes,
                                                int64_t num_scales, std::optional<int64_t> max_neighbors,
                                                std::optional<Tensor> degree) {
  check_tensor(row, "row", 1, ScalarType::Long);
  check_tensor(col, "col", 1, ScalarType::Long);
  STD_TORCH_CHECK(weight.scalar_type() == ScalarType::Float || weight.scalar_type() == ScalarType::Double,
                  "Expected 'weight' to hold float32 or float64 values");
  check_tensor(weight, "weight", 1, weight.scalar_type());
  check_size(col, "col", 0, row.numel());
  check_size(weight, "weight", 0, row.numel());
  STD_TORCH_CHECK(num_nodes >= 0, "Expected 'num_nodes' to be non-negative (got ", num_nodes, ")");
  STD_TORCH_CHECK(num_scales >= 1 && num_scales <= 1024, "Expected 'num_scales' to be from 1 to 1024 (got ", num_scales,
                  ")");
  STD_TORCH_CHECK(max_neighbors.value_or(1) >= 1, "Expected 'max_neighbors' to be at least 1 (got ", *max_neighbors,
                  ")");
  if (degree) {
    check_tensor(*degree, "degree", 2, ScalarType::Double);
    check_size(*degree, "degree", 0, num_nodes);
    check_size(*degree, "degree", 1, num_scales);
    degree = torch::stable::contiguous(*degree);
  }
  row = torch::stable::contiguous(row);
  col = torch::stable::contiguous(col);
  weight = torch::stable::contiguous(weight);
  STD_TORCH_CHECK(first_outside(row, num_nodes) < 0 && first_outside(col, num_nodes) < 0,
                  "Expected 'row' and 'col' to lie in [0, ", num_nodes - 1, "]");
  check_weights(weight);
  return weight.scalar_type() == ScalarType::Float
             ? powers<float>(row, col, weight, num_nodes, num_scales, max_neighbors, degree)
             : powers<double>(row, col, weight, num_nodes, num_scales, max_neighbors, degree);
}

}  // namespace torch_gic
