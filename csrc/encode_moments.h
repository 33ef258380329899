// The sums over receptive fields from which the Gaussian encoding is linear, forward and backward. No torch headers.
#pragma once

#include <cstdint>

namespace torch_gic {

// Fields in compressed rows: the entries of vertex i are entry[rowptr[i]] .. entry[rowptr[i + 1] - 1], or these numbers
// themselves where entry is null. KC = scales * components.
template <typename T>
struct Fields {
  int64_t channels, scales, components;
  const T* x;         // [M, channels]
  const T* distance;  // [M, KC], to each component, the smallest of each scale taken off
  const T* prior;     // [KC], log pi - sum log sigma
  const T* weight;    // [E, scales]
  const int64_t* member;
  const int64_t* rowptr;
  const int64_t* entry;
};

// moments [N, KC, 2, channels]: sum aQ x, sum aQ x^2; mass [N, KC, 2]: sum aQ, sum Q; for the vertices begin .. end
// - 1.
template <typename T>
void encode_moments(const Fields<T>& fields, T* moments, T* mass, int64_t begin, int64_t end);

// The gradients of the same vertices. Those of x and of the distances are added at their member: row 'member - first'
// of grad_member [.., channels + KC], or [.., KC] if no gradient goes to x, a buffer of the caller's. grad_prior [KC]
// is added to, grad_weight [E, scales] written.
template <typename T>
void encode_moments_backward(const Fields<T>& fields, const T* grad_moments, const T* grad_mass, bool to_x,
                             T* grad_member, int64_t first, T* grad_prior, T* grad_weight, int64_t begin, int64_t end);

}  // namespace torch_gic
