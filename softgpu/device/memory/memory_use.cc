#include "softgpu/device/memory/memory_use.h"

#include <sys/mman.h>

#include <deque>
#include <future>
#include <utility>
#include <vector>

#include "softgpu/mutex.h"

namespace softgpu {
namespace {

struct Retired {
  std::uint64_t first_later = 0;  // the number of the first use that began afterwards
  std::function<void()> action;
};

struct Ledger {
  Mutex mutex;  // also of the links in the uses
  std::uint64_t next_number SOFTGPU_GUARDED_BY(mutex) = 1;
  MemoryUse* oldest SOFTGPU_GUARDED_BY(mutex) = nullptr;  // the uses that run, a list in the order of their numbers
  MemoryUse* newest SOFTGPU_GUARDED_BY(mutex) = nullptr;
  std::deque<Retired> retired SOFTGPU_GUARDED_BY(mutex);  // in the order of first_later
};

Ledger& ledger() {
  static auto* instance = new Ledger;  // outlives the threads of streams
  return *instance;
}

}  // namespace

MemoryUse::MemoryUse() {
  Ledger& all = ledger();
  const LockGuard guard(all.mutex);
  number_ = all.next_number++;
  before_ = all.newest;
  (before_ != nullptr ? before_->behind_ : all.oldest) = this;
  all.newest = this;
}

MemoryUse::~MemoryUse() {
  std::vector<Retired> due;
  {
    Ledger& all = ledger();
    const LockGuard guard(all.mutex);
    (before_ != nullptr ? before_->behind_ : all.oldest) = behind_;
    (behind_ != nullptr ? behind_->before_ : all.newest) = before_;
    while (!all.retired.empty() && (all.oldest == nullptr || all.retired.front().first_later <= all.oldest->number_)) {
      due.push_back(std::move(all.retired.front()));
      all.retired.pop_front();
    }
  }
  for (const Retired& each : due) each.action();
}

bool MemoryUse::none() {
  Ledger& all = ledger();
  const LockGuard guard(all.mutex);
  return all.oldest == nullptr;
}

void MemoryUse::retire(std::function<void()> action) {
  {
    Ledger& all = ledger();
    const LockGuard guard(all.mutex);
    if (all.oldest != nullptr) {
      all.retired.push_back({all.next_number, std::move(action)});
      return;
    }
  }
  action();
}

void MemoryUse::retire_mapping(std::uint64_t address, std::uint64_t bytes) {
  void* const begin = reinterpret_cast<void*>(address);
  ::madvise(begin, bytes, MADV_DONTNEED);
  retire([begin, bytes] { ::munmap(begin, bytes); });
}

void MemoryUse::wait_for_all() {
  std::promise<void> ended;
  retire([&ended] { ended.set_value(); });
  ended.get_future().wait();
}

}  // namespace softgpu
