// Checks of operands. Each error names the argument, what was expected and what was passed.
#pragma once

#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace torch_gic {

inline const char* dtype_name(torch::headeronly::ScalarType dtype) {
  switch (dtype) {
    case torch::headeronly::ScalarType::Long:
      return "int64";
    case torch::headeronly::ScalarType::Float:
      return "float32";
    case torch::headeronly::ScalarType::Double:
      return "float64";
    default:
      return "other";
  }
}

inline void check_tensor(const torch::stable::Tensor& tensor, const char* name, int64_t dim,
                         torch::headeronly::ScalarType dtype) {
  STD_TORCH_CHECK(tensor.dim() == dim, "Expected '", name, "' to have ", dim, " dimensions (got ", tensor.dim(), ")");
  STD_TORCH_CHECK(tensor.scalar_type() == dtype, "Expected '", name, "' to hold ", dtype_name(dtype), " values (got ",
                  dtype_name(tensor.scalar_type()), ")");
}

inline void check_size(const torch::stable::Tensor& tensor, const char* name, int64_t dim, int64_t size) {
  STD_TORCH_CHECK(tensor.size(dim) == size, "Expected '", name, "' to have size ", size, " in dimension ", dim,
                  " (got ", tensor.size(dim), ")");
}

// The place of the first value outside 0 .. bound - 1 in a contiguous tensor of int64, or -1. It takes the
// pointer once, since each access through the tensor is a call into torch.
inline int64_t first_outside(const torch::stable::Tensor& tensor, int64_t bound) {
  const auto* values = tensor.const_data_ptr<int64_t>();
  const int64_t count = tensor.numel();
  const auto outside = [&](int64_t value) { return value < 0 || value >= bound; };
  bool any = false;
  for (int64_t k = 0; k < count; ++k) any |= outside(values[k]);  // without an early exit, so that it is vectorised
  return any ? std::find_if(values, values + count, outside) - values : -1;
}

inline void check_range(const torch::stable::Tensor& tensor, const char* name, int64_t bound) {
  const int64_t place = first_outside(tensor, bound);
  STD_TORCH_CHECK(place < 0, "Expected '", name, "' to lie in [0, ", bound - 1, "] (got ",
                  tensor.const_data_ptr<int64_t>()[place], ")");
}

inline void check_sorted(const int64_t* values, int64_t count, const char* name) {
  const int64_t* falls = std::is_sorted_until(values, values + count);
  STD_TORCH_CHECK(falls == values + count, "Expected '", name, "' to be sorted (got ", *falls, " after ", falls[-1],
                  ")");
}

// Checks that all numbers of a contiguous tensor are finite and at least 'lowest'. The error says 'expected'.
template <typename T>
void check_numbers(const torch::stable::Tensor& tensor, const char* name, T lowest, const char* expected) {
  const T *values = tensor.const_data_ptr<T>(), *end = values + tensor.numel();
  const auto wrong = [&](T value) { return !((value >= lowest) & (value <= std::numeric_limits<T>::max())); };
  bool any = false;
  for (const T* value = values; value != end; ++value) any |= wrong(*value);
  STD_TORCH_CHECK(!any, "Expected '", name, "' to be ", expected, " (got ", *std::find_if(values, end, wrong), ")");
}

}  // namespace torch_gic
