// User objects: something of the program's that graphs keep alive. When the last reference goes, the program's destructor
// is called, on the thread that let go of it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "softgpu/driver/api.h"
#include "softgpu/driver/handle.h"

struct CUuserObject_st {
  static constexpr std::uint32_t kMagic = 0x75736F62;  // "usob"
  std::atomic<std::uint32_t> magic{0};
  std::atomic<std::uint64_t> references{0};
  CUhostFn destroy = nullptr;
  void* pointer = nullptr;

  // Calls the destructor and ends the handle with the last reference. REQUIRES: the caller owns `count` of them.
  void release(std::uint64_t count);
};

namespace softgpu::graph {

using UserObjects = HandlePool<CUuserObject_st>;

// References that one graph, or one executable graph, owns. Copying takes as many again. Not thread-safe.
class UserReferences {
 public:
  UserReferences() = default;
  UserReferences(const UserReferences& other);
  UserReferences& operator=(const UserReferences& other);
  ~UserReferences() { clear(); }

  // Takes over references that exist already.
  void adopt(CUuserObject object, std::uint64_t count) { counts_[object] += count; }
  // False when it does not own that many.
  bool release(CUuserObject object, std::uint64_t count);
  void clear();
  void swap(UserReferences& other) { counts_.swap(other.counts_); }

 private:
  std::map<CUuserObject, std::uint64_t> counts_;
};

}  // namespace softgpu::graph
