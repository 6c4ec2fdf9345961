// Damaged shared state: every file of the state folder truncated, zeroed or filled with random bytes. A process must
// refuse it with advice or work; it must not crash, and not trust what it reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "softgpu/device/device_testing.h"
#include "softgpu/device/time/mps.h"

namespace softgpu {
namespace {

using ::testing::HasSubstr;
using testing::kSmall;
using testing::TemporaryHome;

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string random_bytes(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Everything a client does with the shared state. The error, or empty when all of it worked.
std::string use_machine() {
  const auto machine = open_machine();
  if (!machine) return machine.error();
  const auto mps = read_mps(*machine);
  if (!mps) return mps.error();
  auto clients = Clients::open(*machine);
  if (!clients) return clients.error();
  const auto self = clients->join();
  if (!self) return self.error();
  auto device = Device::open(*machine, *clients, *self, 0);
  if (!device) return device.error();
  (*device)->faults().clear();
  const auto heap = (*device)->make_heap();
  const std::uint64_t block = heap->allocate(1 << 20);
  if (block == 0) return "no memory";
  std::memset(reinterpret_cast<void*>(block), 1, 1 << 20);
  if (!(*device)->turn().enter([] { return false; })) return "no turn";
  (*device)->turn().leave();
  const auto view = DeviceView::open(*machine, *clients, 0).value();
  view->sample();
  view->use();
  return "";
}

// Runs use_machine() in a process of its own; "crashed" when it did not end by itself.
std::string use_machine_elsewhere() {
  int report[2];
  if (::pipe(report) != 0) std::abort();
  const int pid = ::fork();
  if (pid == 0) {
    const std::string error = use_machine();
    const bool written = ::write(report[1], error.data(), error.size()) == static_cast<ssize_t>(error.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(report[1]);
  std::string error;
  char buffer[512];
  for (ssize_t count = 0; (count = ::read(report[0], buffer, sizeof buffer)) > 0;) {
    error.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(report[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? error : "crashed";
}

class DamagedState : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(start_mps(open_machine().value(), {}));
    ASSERT_EQ(use_machine_elsewhere(), "");
    path_ = home_.path() + "/" + GetParam();
    intact_ = read_bytes(path_);
  }
  const TemporaryHome home_{kSmall};
  std::string path_;
  std::string intact_;
};

TEST_P(DamagedState, TruncatedIsRefusedWithAdvice) {
  for (const std::size_t left : {std::size_t{0}, std::size_t{1}, intact_.size() / 2, intact_.size() - 1}) {
    write_bytes(path_, intact_.substr(0, left));
    const std::string error = use_machine_elsewhere();
    // Some text files lose only their last character, which is a newline.
    if (left != intact_.size() - 1 || intact_.back() != '\n') {
      EXPECT_THAT(error, HasSubstr("softgpu reset")) << left;
    }
    EXPECT_NE(error, "crashed");
  }
}

TEST_P(DamagedState, ZeroedIsRefusedWithAdvice) {
  write_bytes(path_, std::string(intact_.size(), '\0'));
  EXPECT_THAT(use_machine_elsewhere(), HasSubstr("softgpu reset"));
}

TEST_P(DamagedState, RandomBytesAreRefusedWithAdvice) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    write_bytes(path_, random_bytes(intact_.size(), seed));
    EXPECT_THAT(use_machine_elsewhere(), HasSubstr("softgpu reset"));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DamagedState,
                         ::testing::Values("machine", "clients", "shares", "device0.control", "mps"));

// The words behind an intact head change all the time, so their damage cannot be seen; it must not do any.
TEST(DamagedWords, AreNotTrusted) {
  for (const auto& [file, head] : {std::pair{"device0.control", 16}, std::pair{"clients", 8}}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      const TemporaryHome home(kSmall);
      ASSERT_EQ(use_machine_elsewhere(), "");
      const std::string path = home.path() + "/" + file;
      const std::string intact = read_bytes(path);
      write_bytes(path, intact.substr(0, head) + random_bytes(intact.size() - head, seed));
      EXPECT_EQ(use_machine_elsewhere(), "") << file << ", seed " << seed;
    }
  }
}

TEST(DamagedMemory, IsOnlyMemory) {
  const TemporaryHome home(kSmall);
  for (const char* file : {"device0.memory", "slots"}) {
    ASSERT_EQ(use_machine_elsewhere(), "");
    for (const std::string& content : {std::string(), std::string(1, 'x'), random_bytes(100'000, 1)}) {
      write_bytes(home.path() + "/" + file, content);
      EXPECT_EQ(use_machine_elsewhere(), "") << file;
    }
  }
}

}  // namespace
}  // namespace softgpu
