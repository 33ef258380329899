#pragma once

#include <torch/csrc/stable/tensor.h>

#include <tuple>

namespace torch_gic {

std::tuple<torch::stable::Tensor, torch::stable::Tensor> encode_moments_cpu(
    torch::stable::Tensor x, torch::stable::Tensor distance, torch::stable::Tensor prior, torch::stable::Tensor weight,
    torch::stable::Tensor member, torch::stable::Tensor vertex, int64_t num_nodes);

std::tuple<torch::stable::Tensor, torch::stable::Tensor, torch::stable::Tensor, torch::stable::Tensor>
encode_moments_backward_cpu(torch::stable::Tensor grad_moments, torch::stable::Tensor grad_mass,
                            torch::stable::Tensor x, torch::stable::Tensor distance, torch::stable::Tensor prior,
                            torch::stable::Tensor weight, torch::stable::Tensor member, torch::stable::Tensor vertex);

}  // namespace torch_gic
