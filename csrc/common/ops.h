// The operators of the library. Their schemas are in Python, with the same arguments.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <tuple>

namespace torch_gic {

using torch::stable::Tensor;

std::tuple<Tensor, Tensor> adjacency_powers_cpu(Tensor row, Tensor col, Tensor weight, int64_t num_nodes,
                                                int64_t num_scales, std::optional<int64_t> max_neighbors,
                                                std::optional<Tensor> degree);

Tensor channel_statistics_cpu(Tensor x);

std::tuple<Tensor, Tensor> outlier_clamp_cpu(Tensor x, Tensor running, double bound);

Tensor outlier_clamp_backward_cpu(Tensor grad, Tensor x, Tensor running, double bound);

Tensor describe_cpu(Tensor encoding, Tensor mass, Tensor sigma);

std::tuple<Tensor, Tensor, Tensor> describe_backward_cpu(Tensor grad, Tensor encoding, Tensor mass, Tensor sigma);

std::tuple<Tensor, Tensor> field_mean_cpu(Tensor x, Tensor weight, Tensor member, Tensor rowptr);

std::tuple<Tensor, Tensor> field_mean_backward_cpu(Tensor grad, Tensor mean, Tensor mass, Tensor x, Tensor weight,
                                                   Tensor member, Tensor rowptr, bool x_needs_grad,
                                                   bool weight_needs_grad);

std::tuple<Tensor, Tensor> gaussian_encode_cpu(Tensor x, Tensor mu, Tensor sigma, Tensor log_pi, Tensor weight,
                                               Tensor member, Tensor rowptr);

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gaussian_encode_backward_cpu(
    Tensor grad, Tensor grad_mass, Tensor encoding, Tensor mass, Tensor x, Tensor mu, Tensor sigma, Tensor log_pi,
    Tensor weight, Tensor member, Tensor rowptr, bool x_needs_grad, bool weight_needs_grad);

std::tuple<Tensor, Tensor, Tensor> bounded_norm_cpu(Tensor x, double bound);

Tensor bounded_norm_backward_cpu(Tensor grad, Tensor x, Tensor mean, Tensor var, double bound);

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> coarsen_cpu(
    Tensor edge_index, std::optional<Tensor> edge_weight, Tensor influence, Tensor batch, int64_t num_graphs,
    double ratio, std::optional<int64_t> count, int64_t num_iterations, int64_t max_size, bool by_degree,
    std::optional<Tensor> start, int64_t num_refinements, int64_t most_together, double rounding, int64_t num_passes,
    int64_t growth);

Tensor responsibility_cpu(Tensor node_weight, Tensor rowptr, Tensor col, Tensor weight, Tensor ptr, Tensor offset,
                          Tensor cluster, Tensor beta);

Tensor responsibility_backward_cpu(Tensor grad, Tensor node_weight, Tensor rowptr, Tensor col, Tensor weight,
                                   Tensor ptr, Tensor offset, Tensor cluster, Tensor beta);

Tensor soft_em_cpu(Tensor diagonal, Tensor rowptr, Tensor col, Tensor value, Tensor node_weight, Tensor rank,
                   Tensor ptr, Tensor offset, Tensor beta, Tensor cluster, int64_t num_iterations);

Tensor cluster_max_cpu(Tensor x, Tensor cluster, int64_t num_clusters);

Tensor cluster_max_backward_cpu(Tensor grad, Tensor x, Tensor out, Tensor cluster);

std::tuple<Tensor, Tensor> cluster_edges_cpu(Tensor edge_index, Tensor cluster, int64_t num_clusters);

}  // namespace torch_gic
