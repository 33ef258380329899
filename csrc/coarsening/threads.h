// Which loops of coarsening run on several threads.
#pragma once

#include "coarsening/loop.h"
#include "common/parallel.h"

namespace torch_gic {

constexpr int64_t kLargeGraph = 16384;  // nodes from which on a graph is worth several threads
constexpr int64_t kBlock = 4096;

inline void on_one_thread(int64_t size, const Work& work) {
  Blocks blocks(size, std::max<int64_t>(size, 1));
  work(blocks);
}

inline void on_all_threads(int64_t size, const Work& work) {
  Blocks blocks(size, kBlock);
  parallel_for(0, (size + kBlock - 1) / kBlock, 1, [&](int64_t, int64_t) { work(blocks); });
}

// Calls work(g, tool) for each graph: large ones one after the other, on all threads, then the others side by side. Each
// thread makes a tool of its own, by make(loop), and keeps it.
template <typename Make, typename Work>
void for_each_graph(const int64_t* ptr, int64_t num_graphs, const Make& make, const Work& work) {
  static const Loop serial = on_one_thread, parallel = on_all_threads;
  const auto is_large = [&](int64_t g) { return ptr[g + 1] - ptr[g] >= kLargeGraph; };
  for (int64_t g = 0; g < num_graphs; ++g) {
    if (!is_large(g)) continue;
    auto tool = make(parallel);
    work(g, tool);
  }
  Blocks blocks(num_graphs, 4);
  parallel_for(0, (num_graphs + 3) / 4, 1, [&](int64_t, int64_t) {
    auto tool = make(serial);
    for (int64_t g, last; blocks.next(g, last);) {
      for (; g < last; ++g) {
        if (!is_large(g)) work(g, tool);
      }
    }
  });
}

}  // namespace torch_gic
