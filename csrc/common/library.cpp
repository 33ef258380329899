// Registers the CPU kernels of all operations. Schemas, fake kernels and references live in Python, so the operations
// exist with or without this library. Only the stable ABI of LibTorch is used: one build serves torch 2.10 and later.
#include <torch/csrc/stable/library.h>

#include "common/ops.h"

STABLE_TORCH_LIBRARY_IMPL(torch_gic, CPU, m) {
  m.impl("adjacency_powers", TORCH_BOX(&torch_gic::adjacency_powers_cpu));
  m.impl("bounded_norm", TORCH_BOX(&torch_gic::bounded_norm_cpu));
  m.impl("bounded_norm_backward", TORCH_BOX(&torch_gic::bounded_norm_backward_cpu));
  m.impl("field_mean", TORCH_BOX(&torch_gic::field_mean_cpu));
  m.impl("field_mean_backward", TORCH_BOX(&torch_gic::field_mean_backward_cpu));
  m.impl("gaussian_encode", TORCH_BOX(&torch_gic::gaussian_encode_cpu));
  m.impl("gaussian_encode_backward", TORCH_BOX(&torch_gic::gaussian_encode_backward_cpu));
  m.impl("undirected_graph", TORCH_BOX(&torch_gic::undirected_graph_cpu));
  m.impl("structural_rank", TORCH_BOX(&torch_gic::structural_rank_cpu));
  m.impl("merge_clusters", TORCH_BOX(&torch_gic::merge_clusters_cpu));
  m.impl("move_vertices", TORCH_BOX(&torch_gic::move_vertices_cpu));
  m.impl("vigmm", TORCH_BOX(&torch_gic::vigmm_cpu));
}
