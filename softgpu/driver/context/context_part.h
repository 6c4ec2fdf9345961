// What belongs to a context without the context knowing it: the modules loaded into it, the memory its kernels may access,
// the captures that began in it. The folder above puts such a part in, the context keeps it and closes it when it ends.
//
// Example: the first module of a context makes its ContextModules (code/module.h). When the context is destroyed, its work
// is waited for; then modules are unloaded; then managed memory goes, which they may have used; then the heap.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

struct CUctx_st;

namespace softgpu {

class ContextPart {
 public:
  // One part of each kind; closed from the last to the first, so a part may use what those before it hold.
  enum class Kind : std::size_t { kKernelHeap, kManagedMemory, kAccess, kModules, kCaptures };
  static constexpr std::size_t kKinds = 5;

  ContextPart() = default;
  virtual ~ContextPart() = default;
  ContextPart(const ContextPart&) = delete;
  ContextPart& operator=(const ContextPart&) = delete;

  // The context ends: nothing of it runs any more, and its device memory is still there. The part stays, empty, for the
  // context's next activation. Other threads may be in the midst of a call.
  virtual void close() = 0;
};

// Thread-safe.
class ContextParts {
 public:
  explicit ContextParts(CUctx_st& owner) : owner_(owner) {}
  ~ContextParts();
  ContextParts(const ContextParts&) = delete;
  ContextParts& operator=(const ContextParts&) = delete;

  // The context's part of that type, made from the context when it is first asked for. Lives as long as the context. One
  // load once it is there.
  template <typename Part>
  Part& get() {
    std::atomic<ContextPart*>& place = parts_[static_cast<std::size_t>(Part::kKind)];
    ContextPart* part = place.load(std::memory_order_acquire);
    if (part == nullptr) part = keep_first(place, std::make_unique<Part>(owner_));
    return static_cast<Part&>(*part);
  }

  // Closes those there are, the last kind first.
  void close();

 private:
  static ContextPart* keep_first(std::atomic<ContextPart*>& place, std::unique_ptr<ContextPart> made);

  CUctx_st& owner_;
  std::array<std::atomic<ContextPart*>, ContextPart::kKinds> parts_{};
};

}  // namespace softgpu
