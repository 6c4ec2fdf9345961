#include "softgpu/device/private_descriptors.h"

#include <pthread.h>
#include <unistd.h>

#include <set>

#include "softgpu/mutex.h"

namespace softgpu {
namespace {

struct Held {
  Mutex mutex;
  std::set<int> descriptors SOFTGPU_GUARDED_BY(mutex);
};

Held& held() {
  static Held* instance = [] {
    auto* made = new Held;
    // Taken before a fork, and let go of behind it on both sides: no function sees both.
    ::pthread_atfork([]() SOFTGPU_NO_THREAD_SAFETY_ANALYSIS { held().mutex.lock(); },
                     []() SOFTGPU_NO_THREAD_SAFETY_ANALYSIS { held().mutex.unlock(); },
                     []() SOFTGPU_NO_THREAD_SAFETY_ANALYSIS {
                       for (const int descriptor : held().descriptors) ::close(descriptor);
                       held().descriptors.clear();
                       held().mutex.unlock();
                     });
    return made;
  }();
  return *instance;
}

}  // namespace

PrivateDescriptors::NoFork::NoFork() {
  held().mutex.lock();
}

PrivateDescriptors::NoFork::~NoFork() {
  held().mutex.unlock();
}

// The proof holds the lock, whose name its class does not know.
void PrivateDescriptors::add(const NoFork&, int descriptor) SOFTGPU_NO_THREAD_SAFETY_ANALYSIS {
  held().descriptors.insert(descriptor);
}

void PrivateDescriptors::close(int descriptor) {
  const LockGuard guard(held().mutex);
  if (held().descriptors.erase(descriptor) != 0) ::close(descriptor);
}

}  // namespace softgpu
