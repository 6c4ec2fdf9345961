#include "softgpu/device/private_descriptors.h"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <set>

namespace softgpu {
namespace {

struct Held {
  std::mutex mutex;
  std::set<int> descriptors;  // guarded by mutex
};

Held& held() {
  static Held* instance = [] {
    auto* made = new Held;
    ::pthread_atfork([] { held().mutex.lock(); }, [] { held().mutex.unlock(); },
                     [] {
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

void PrivateDescriptors::add(const NoFork&, int descriptor) {
  held().descriptors.insert(descriptor);
}

void PrivateDescriptors::close(int descriptor) {
  const std::lock_guard guard(held().mutex);
  if (held().descriptors.erase(descriptor) != 0) ::close(descriptor);
}

}  // namespace softgpu
