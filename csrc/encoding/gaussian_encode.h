// The gradients of the log-likelihood of each field under a Gaussian mixture, forward and backward. No torch headers.
#pragma once

#include <cstdint>

namespace torch_gic {

// Fields in compressed rows, and the mixtures that encode them. KC = scales * components.
template <typename T>
struct Encoding {
  int64_t channels, scales, components;
  const T* x;               // [M, channels], relative to a typical row, as the means are
  const T* distance;        // [M, KC], minus the smallest of each scale; null for one component
  const T* prior;           // [KC], log pi - sum log sigma
  const T* weight;          // [E, scales]
  const int64_t* member;    // [E]
  const int64_t* rowptr;    // [N + 1]
  const T *mu, *precision;  // [KC, channels]; precision is 1 / sigma
};

// Where the gradients of some nodes are added. Row 'member - first' of 'member' holds those of x and of the distances:
// [.., channels + KC]. There are no channels without a gradient of x, and no KC without distances.
template <typename T>
struct Gradients {
  bool to_x;
  int64_t first;
  T *member, *prior, *mu, *sigma;
  T* weight;  // [E, scales], overwritten; null if not needed
};

// For the nodes begin .. end - 1: encoding [N, KC, 2, channels], the gradients of the means and of the deviations; mass
// [N, KC, 2], sum aQ and sum Q.
template <typename T>
void gaussian_encode(const Encoding<T>& fields, T* encoding, T* mass, int64_t begin, int64_t end);

template <typename T>
void gaussian_encode_backward(const Encoding<T>& fields, const T* grad, const T* grad_mass, const T* encoding,
                              const T* mass, const Gradients<T>& to, int64_t begin, int64_t end);

}  // namespace torch_gic
