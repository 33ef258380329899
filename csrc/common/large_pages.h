// Fresh memory in large pages.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace torch_gic {

// The system provides fresh memory page by page at the first write. For a large result, this takes longer than
// computing it. So ask for pages of 2 MB instead of 4 KB, where the system has them. The hint changes no value.
inline void use_large_pages(void* data, int64_t bytes) {
#ifdef __linux__
  constexpr uintptr_t size = uintptr_t{1} << 21;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + size - 1) / size * size;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / size * size;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

// For vectors that are read at random places: with small pages, most addresses would have to be translated first.
template <typename T>
struct LargePages : std::allocator<T> {
  T* allocate(size_t count) {
    T* data = std::allocator<T>::allocate(count);
    use_large_pages(data, count * sizeof(T));
    return data;
  }
};

template <typename T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace torch_gic
