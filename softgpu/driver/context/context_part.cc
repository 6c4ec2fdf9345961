#include "softgpu/driver/context/context_part.h"

namespace softgpu {

ContextParts::~ContextParts() {
  for (const auto& part : parts_) delete part.load();
}

void ContextParts::close() {
  for (auto place = parts_.rbegin(); place != parts_.rend(); ++place) {
    if (ContextPart* part = place->load(std::memory_order_acquire)) part->close();
  }
}

// Of two threads that make a part at a time, the second takes the first one's.
ContextPart* ContextParts::keep_first(std::atomic<ContextPart*>& place, std::unique_ptr<ContextPart> made) {
  ContextPart* first = nullptr;
  return place.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel) ? made.release() : first;
}

}  // namespace softgpu
