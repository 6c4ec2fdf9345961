#include "softgpu/device/mapping_guard.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "softgpu/device/device_testing.h"
#include "softgpu/device/files.h"

namespace softgpu {
namespace {

using testing::as_client;
using testing::Client;
using testing::kSmall;
using testing::TemporaryHome;

TEST(MappingGuard, AControlSegmentTruncatedUnderAProcessDoesNotKillIt) {
  const TemporaryHome home(kSmall);
  as_client([&](Client& client) {
    const auto heap = client.device->make_heap();
    EXPECT_FALSE(mapping_lost());
    ASSERT_EQ(::truncate((home.path() + "/device0.control").c_str(), 0), 0);
    heap->allocate(100 << 20);
    EXPECT_TRUE(mapping_lost());
  });
}

TEST(MappingGuard, DeviceMemoryTruncatedUnderAProcessDoesNotKillIt) {
  const TemporaryHome home(kSmall);
  as_client([&](Client& client) {
    const auto heap = client.device->make_heap();
    const std::uint64_t block = heap->allocate(1 << 20);
    ASSERT_EQ(::truncate((home.path() + "/device0.memory").c_str(), 0), 0);
    std::memset(reinterpret_cast<void*>(block), 1, 1 << 20);
    EXPECT_TRUE(mapping_lost());
    EXPECT_EQ(*reinterpret_cast<volatile char*>(block), 1);
  });
}

TEST(MappingGuard, OtherBusErrorsStillEndTheProcess) {
  const TemporaryHome home(kSmall);
  const int pid = ::fork();
  if (pid == 0) {
    testing::open_client();
    const std::string path = home.path() + "/other";
    const int file = open_file(path).value();
    auto* mapping = static_cast<volatile char*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
    ::_exit(mapping[0]);  // beyond the end of the file
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a sanitizer takes the signal and exits with an error";
}

TEST(MappingGuard, TheProgramsOwnHandlerIsCalledForItsOwnFaults) {
  const TemporaryHome home(kSmall);
  const int pid = ::fork();
  if (pid == 0) {
    ::signal(SIGBUS, [](int) { ::_exit(42); });
    testing::open_client();
    const int file = open_file(home.path() + "/other").value();
    auto* mapping = static_cast<volatile char*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
    ::_exit(mapping[0]);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
}

}  // namespace
}  // namespace softgpu
