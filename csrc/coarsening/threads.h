// Which loops of coarsening run on several threads.
#pragma once

#include "coarsening/loop.h"
#include "common/parallel.h"

namespace torch_gic {

constexpr int64_t kLargeGraph = 16384;  // nodes from which on a graph is worth several threads
constexpr int64_t kBlock = 4096;

inline const Loop& on_all_threads() {
  static const Loop loop([](int64_t size, const std::function<void(Blocks&)>& work) {
    Blocks blocks(size, kBlock);
    parallel_for(0, (size + kBlock - 1) / kBlock, 1, [&](int64_t, int64_t) { work(blocks); });
  });
  return loop;
}

// For as many nodes: on all threads if that pays.
inline const Loop& loop_over(int64_t size) {
  static const Loop serial;
  return size < kLargeGraph ? serial : on_all_threads();
}

// Calls work(g, tool) for each graph: large ones one after the other, on all threads, then the others side by side.
// Each thread makes a tool of its own, by make(loop), and keeps it.
template <typename Make, typename Work>
void for_each_graph(const int64_t* ptr, int64_t num_graphs, const Make& make, const Work& work) {
  const auto is_large = [&](int64_t g) { return ptr[g + 1] - ptr[g] >= kLargeGraph; };
  for (int64_t g = 0; g < num_graphs; ++g) {
    if (!is_large(g)) continue;
    auto tool = make(on_all_threads());
    work(g, tool);
  }
  Blocks blocks(num_graphs, 4);
  parallel_for(0, (num_graphs + 3) / 4, 1, [&](int64_t, int64_t) {
    auto tool = make(loop_over(0));
    for (int64_t g, last; blocks.next(g, last);) {
      for (; g < last; ++g) {
        if (!is_large(g)) work(g, tool);
      }
    }
  });
}

}  // namespace torch_gic
