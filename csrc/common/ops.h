// The operators of the library, with the arguments of their schemas, which are in Python.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <tuple>

namespace torch_gic {

using torch::stable::Tensor;

std::tuple<Tensor, Tensor> adjacency_powers_cpu(Tensor row, Tensor col, Tensor weight, int64_t num_nodes,
                                                int64_t num_scales, std::optional<int64_t> max_neighbors,
                                                std::optional<Tensor> degree);

std::tuple<Tensor, Tensor> field_mean_cpu(Tensor x, Tensor weight, Tensor member, Tensor rowptr);

std::tuple<Tensor, Tensor> field_mean_backward_cpu(Tensor grad, Tensor mean, Tensor mass, Tensor x, Tensor weight,
                                                   Tensor member, Tensor rowptr, bool x_needs_grad,
                                                   bool weight_needs_grad);

std::tuple<Tensor, Tensor> gaussian_encode_cpu(Tensor x, Tensor mu, Tensor sigma, Tensor log_pi, Tensor weight,
                                               Tensor member, Tensor rowptr);

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gaussian_encode_backward_cpu(
    Tensor grad, Tensor encoding, Tensor mass, Tensor x, Tensor mu, Tensor sigma, Tensor log_pi, Tensor weight,
    Tensor member, Tensor rowptr, bool x_needs_grad, bool weight_needs_grad);

std::tuple<Tensor, Tensor, Tensor> bounded_norm_cpu(Tensor x, double bound);

Tensor bounded_norm_backward_cpu(Tensor grad, Tensor x, Tensor mean, Tensor var, double bound);

std::tuple<Tensor, Tensor, Tensor, Tensor> undirected_graph_cpu(Tensor edge_index, Tensor edge_weight, Tensor batch,
                                                                int64_t num_graphs);

Tensor structural_rank_cpu(Tensor row, Tensor col, Tensor weight, Tensor influence, Tensor ptr);

Tensor merge_clusters_cpu(Tensor row, Tensor col, Tensor weight, Tensor vertex_weight, Tensor rank, Tensor ptr,
                          Tensor offset, int64_t max_size);

Tensor move_vertices_cpu(Tensor row, Tensor col, Tensor weight, Tensor vertex_weight, Tensor rank, Tensor ptr,
                         Tensor offset, Tensor cluster, int64_t num_iterations, int64_t max_size);

Tensor vigmm_cpu(Tensor diagonal, Tensor row, Tensor col, Tensor value, Tensor vertex_weight, Tensor rank, Tensor ptr,
                 Tensor offset, Tensor beta, Tensor cluster, int64_t num_iterations);

}  // namespace torch_gic
