// Fresh memory in large pages.
#pragma once

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace torch_gic {

// The system hands out fresh memory page by page at the first write, which for a large result takes longer than
// computing it. Pages of 2 MB instead of 4 KB, where the system has them; a hint that changes no value.
inline void use_large_pages(void* data, int64_t bytes) {
#ifdef __linux__
  constexpr uintptr_t size = uintptr_t{1} << 21;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + size - 1) / size * size;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / size * size;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace torch_gic
