// What the stages of coarsening share: loops on one thread or on several, and how they choose. No torch headers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

namespace torch_gic {

// Hands out blocks of 0 .. size - 1 to whoever asks next.
class Blocks {
 public:
  Blocks(int64_t size, int64_t block) : size_(size), block_(block) {}

  bool next(int64_t& first, int64_t& last) {
    first = next_.fetch_add(block_, std::memory_order_relaxed);
    last = std::min(size_, first + block_);
    return first < size_;
  }

 private:
  const int64_t size_, block_;
  std::atomic<int64_t> next_{0};
};

// A loop on this thread, or on all: calls work(blocks) once on each, which then asks for blocks until there are no
// more. What a block computes must not depend on the others.
class Loop {
 public:
  using Threads = std::function<void(int64_t, const std::function<void(Blocks&)>&)>;

  Loop() = default;
  explicit Loop(Threads threads) : threads_(std::move(threads)) {}

  template <typename Work>
  void operator()(int64_t size, const Work& work) const {
    if (threads_) return threads_(size, work);
    Blocks blocks(size, std::max<int64_t>(size, 1));
    work(blocks);
  }

 private:
  Threads threads_;
};

// Calls body(i) for 0 .. size - 1.
template <typename Body>
void for_each(const Loop& loop, int64_t size, const Body& body) {
  loop(size, [&](Blocks& blocks) {
    for (int64_t i, last; blocks.next(i, last);) {
      for (; i < last; ++i) body(i);
    }
  });
}

// Objectives are compared in whole steps of 2^-32, as in the references: rounding errors decide nothing.
inline int64_t on_grid(double objective) { return std::llrint(objective * 4294967296.0); }

// The finalizer of SplitMix64, as in the references.
inline int64_t mix(int64_t value) {
  auto z = static_cast<uint64_t>(value);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<int64_t>(z ^ (z >> 31));
}

}  // namespace torch_gic
