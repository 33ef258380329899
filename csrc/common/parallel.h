// Work that is divided into parts of unequal cost.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#ifdef __SANITIZE_THREAD__
#include <thread>
#include <vector>
#endif

namespace torch_gic {

// Splits begin .. end - 1 into ranges of at least 'grain', and calls work(first, last) for each.
template <typename Work>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const Work& work) {
#ifdef __SANITIZE_THREAD__  // it does not see how OpenMP synchronises, and reports races
  constexpr int64_t threads = 4;
  const int64_t count = std::clamp<int64_t>((end - begin) / grain, 1, threads);
  std::vector<std::thread> running;
  for (int64_t t = 0; t < count; ++t) {
    running.emplace_back([&, t] { work(begin + (end - begin) * t / count, begin + (end - begin) * (t + 1) / count); });
  }
  for (auto& thread : running) thread.join();
#else
  torch::stable::parallel_for(begin, end, grain, work);
#endif
}

// Calls work(part) once for each part. A thread that has finished takes the next part, so parts may differ in cost. The
// result of a part must not depend on the thread.
template <typename Work>
void for_each_part(int64_t count, const Work& work) {
  std::atomic<int64_t> next{0};
  parallel_for(0, count, 1, [&](int64_t, int64_t) {
    for (int64_t part = next++; part < count; part = next++) work(part);
  });
}

}  // namespace torch_gic
