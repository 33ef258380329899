// Checks of operands: each error names the argument, what was expected and what came.
#pragma once

#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

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

}  // namespace torch_gic
