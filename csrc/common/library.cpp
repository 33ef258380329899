// Registers the CPU kernels of all operations. Schemas, fake kernels and references live in Python, so the operations
// exist with or without this library. Only the stable ABI of LibTorch is used: one build serves torch 2.10 and later.
#include <torch/csrc/stable/library.h>

#include "common/ops.h"

STABLE_TORCH_LIBRARY_IMPL(torch_gic, CPU, m) {
  m.impl("adjacency_powers", TORCH_BOX(&torch_gic::adjacency_powers_cpu));
  m.impl("bounded_norm", TORCH_BOX(&torch_gic::bounded_norm_cpu));
  m.impl("bounded_norm_backward", TORCH_BOX(&torch_gic::bounded_norm_backward_cpu));
  m.impl("channel_statistics", TORCH_BOX(&torch_gic::channel_statistics_cpu));
  m.impl("outlier_clamp", TORCH_BOX(&torch_gic::outlier_clamp_cpu));
  m.impl("outlier_clamp_backward", TORCH_BOX(&torch_gic::outlier_clamp_backward_cpu));
  m.impl("describe", TORCH_BOX(&torch_gic::describe_cpu));
  m.impl("describe_backward", TORCH_BOX(&torch_gic::describe_backward_cpu));
  m.impl("field_mean", TORCH_BOX(&torch_gic::field_mean_cpu));
  m.impl("field_mean_backward", TORCH_BOX(&torch_gic::field_mean_backward_cpu));
  m.impl("gaussian_encode", TORCH_BOX(&torch_gic::gaussian_encode_cpu));
  m.impl("gaussian_encode_backward", TORCH_BOX(&torch_gic::gaussian_encode_backward_cpu));
  m.impl("coarsen", TORCH_BOX(&torch_gic::coarsen_cpu));
  m.impl("responsibility", TORCH_BOX(&torch_gic::responsibility_cpu));
  m.impl("responsibility_backward", TORCH_BOX(&torch_gic::responsibility_backward_cpu));
  m.impl("soft_em", TORCH_BOX(&torch_gic::soft_em_cpu));
  m.impl("cluster_max", TORCH_BOX(&torch_gic::cluster_max_cpu));
  m.impl("cluster_max_backward", TORCH_BOX(&torch_gic::cluster_max_backward_cpu));
  m.impl("cluster_edges", TORCH_BOX(&torch_gic::cluster_edges_cpu));
}
