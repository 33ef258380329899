// Work that is divided into parts of unequal cost.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <atomic>
#include <cstdint>

namespace torch_gic {

// Calls work(part) once for each part. A thread that is done takes the next part: parallel_for alone would give each
// thread its share beforehand. What a part computes must not depend on who does it.
template <typename Work>
void for_each_part(int64_t count, const Work& work) {
  std::atomic<int64_t> next{0};
  torch::stable::parallel_for(0, count, 1, [&](int64_t, int64_t) {
    for (int64_t part = next++; part < count; part = next++) work(part);
  });
}

}  // namespace torch_gic
