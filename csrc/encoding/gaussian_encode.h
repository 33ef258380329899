// The gradients of the log-likelihood of each field under a Gaussian mixture, forward and backward. No torch headers.
#pragma once

#include <cstdint>

namespace torch_gic {

// Fields in compressed rows, and the mixtures that encode them. KC = scales * components.
template <typename T>
struct Encoding {
  int64_t channels, scales, components;
  const T* x;               // [M, channels], like the means relative to a typical row
  const T* distance;        // [M, KC], to each component, the smallest of each scale taken off; null for one component
  const T* prior;           // [KC], log pi - sum log sigma
  const T* weight;          // [E, scales]
  const int64_t* member;    // [E]
  const int64_t* rowptr;    // [N + 1]
  const T *mu, *precision;  // [KC, channels]; precision is 1 / sigma
};

// Where the gradients of some nodes are added. Those of x and of the distances belong to a member: row 'member - first'
// of [.., channels + KC], without channels if no gradient goes to x, without KC if there are no distances.
template <typename T>
struct Gradients {
  bool to_x;
  int64_t first;
  T *member, *prior, *mu, *sigma;
  T* weight;  // [E, scales], written; null if nobody asks
};

// encoding [N, KC, 2, channels], to the means and to the deviations; mass [N, KC, 2]: sum aQ, sum Q; for the nodes
// begin .. end - 1.
template <typename T>
void gaussian_encode(const Encoding<T>& fields, T* encoding, T* mass, int64_t begin, int64_t end);

template <typename T>
void gaussian_encode_backward(const Encoding<T>& fields, const T* grad, const T* grad_mass, const T* encoding,
                              const T* mass, const Gradients<T>& to, int64_t begin, int64_t end);

}  // namespace torch_gic
