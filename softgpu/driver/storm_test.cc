// The kill storm: processes allocate, compute, copy and share memory, and are killed at random instants, also in the
// middle of any store to the shared state. Afterwards the device is empty and usable, and no survivor ever saw a wrong
// result. SOFTGPU_STORM_KILLS sets how many are killed, SOFTGPU_STORM_SEED when.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "softgpu/device/device.h"
#include "softgpu/driver/driver_testing.h"

namespace softgpu::testing {
namespace {

constexpr unsigned kProcesses = 6;
constexpr unsigned kDefaultKills = 100;
constexpr unsigned kWords = 5000;

unsigned environment_number(const char* name, unsigned fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : fallback;
}

// False when the device was full: others may have all of it.
bool compute_and_check(unsigned round) {
  CUdeviceptr words = 0;
  CUdeviceptr large = 0;
  const CUresult allocated = cuMemAlloc_v2(&words, 4 * kWords);
  if (allocated == CUDA_ERROR_OUT_OF_MEMORY) return false;
  EXPECT_EQ(allocated, CUDA_SUCCESS);
  if (cuMemAlloc_v2(&large, (1 + round % 20) << 20) != CUDA_SUCCESS) large = 0;
  std::uint32_t count = kWords;
  void* parameters[] = {&words, &count};
  EXPECT_EQ(run_kernel("store_index", parameters, nullptr, 40, 128), CUDA_SUCCESS);
  std::vector<std::uint32_t> host(kWords);
  std::vector<std::uint32_t> expected(kWords);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(cuMemcpyDtoH_v2(host.data(), words, 4 * kWords), CUDA_SUCCESS);
  EXPECT_EQ(host, expected);
  EXPECT_EQ(cuMemFree_v2(words), CUDA_SUCCESS);
  if (large != 0) {
    EXPECT_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
  }
  return true;
}

std::string handle_path() {
  return machine_home() + "/../storm-handle-" + std::to_string(std::hash<std::string>()(machine_home()));
}

// Opens what the exporter shares; only ever reads it.
void read_shared() {
  CUipcMemHandle handle = {};
  std::ifstream file(handle_path(), std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&handle), sizeof handle)) return;
  CUdeviceptr shared = 0;
  ASSERT_EQ(cuIpcOpenMemHandle_v2(&shared, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
  std::uint32_t word = 0;
  EXPECT_EQ(cuMemcpyDtoH_v2(&word, shared + 4096, sizeof word), CUDA_SUCCESS);
  EXPECT_EQ(word, 0xC0FFEE00U);
  EXPECT_EQ(cuIpcCloseMemHandle(shared), CUDA_SUCCESS);
}

// Works until it is killed; ends by itself only when something is wrong.
const Scenario kVictim("storm victim", [] {
  if (cuInit(0) != CUDA_SUCCESS) std::abort();
  CUcontext context = nullptr;
  while (cuDevicePrimaryCtxRetain(&context, 0) == CUDA_ERROR_OUT_OF_MEMORY) std::this_thread::yield();
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  for (unsigned round = 0; !::testing::Test::HasFailure(); ++round) {
    compute_and_check(round);
    read_shared();
  }
});

// Started by exec, not waited for.
class Victim {
 public:
  Victim() {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::execl("/proc/self/exe", "storm", "--scenario", "storm victim", nullptr);
    ::_exit(127);
  }
  // True when it had lived until now, which is what a victim should.
  bool kill() {
    const bool lived = ::waitpid(pid_, nullptr, WNOHANG) == 0;
    ::kill(pid_, SIGKILL);
    if (lived) ::waitpid(pid_, nullptr, 0);
    return lived;
  }

 private:
  int pid_ = 0;
};

// The survivor: exports memory, and computes beside the dying.
const Scenario kStorm("storm", [] {
  use_device();
  CUdeviceptr shared = 0;
  CUipcMemHandle handle = {};
  ASSERT_EQ(cuMemAlloc_v2(&shared, 3 << 20), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32_v2(shared, 0xC0FFEE00, (3 << 20) / 4), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetMemHandle(&handle, shared), CUDA_SUCCESS);
  std::ofstream(handle_path(), std::ios::binary).write(reinterpret_cast<const char*>(&handle), sizeof handle);

  const unsigned kills = environment_number("SOFTGPU_STORM_KILLS", kDefaultKills);
  std::mt19937 random(environment_number("SOFTGPU_STORM_SEED", 1));
  std::vector<Victim> victims(kProcesses);
  for (unsigned kill = 0; kill < kills && !::testing::Test::HasFailure(); ++kill) {
    for (unsigned rounds = random() % 6; rounds > 0; --rounds) compute_and_check(random());
    Victim& victim = victims[random() % kProcesses];
    EXPECT_TRUE(victim.kill());
    victim = Victim();
  }
  for (Victim& victim : victims) EXPECT_TRUE(victim.kill());
  EXPECT_TRUE(compute_and_check(0));
  std::remove(handle_path().c_str());
});

const Scenario kAfterwards("after the storm", [] {
  use_device();
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  CUdeviceptr rest = 0;
  EXPECT_EQ(cuMemAlloc_v2(&rest, free_bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(rest), CUDA_SUCCESS);
  EXPECT_TRUE(compute_and_check(0));
});

TEST(KillStorm, LeavesTheDeviceEmptyTheLockFreeAndTheOthersRight) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}, {"SOFTGPU_TIME_SLICE_US", "300"}});
  Fresh storm("storm");
  EXPECT_TRUE(storm.ran());
  storm.kill();
  const Machine machine = open_machine().value();
  const Clients clients = Clients::open(machine).value();
  const auto view = DeviceView::open(machine, clients, 0).value();
  EXPECT_EQ(view->use().total, 0U);
  EXPECT_EQ(view->sample().busy > 1, false);
  EXPECT_TRUE(Fresh("after the storm").ran());
  EXPECT_EQ(view->control().lock.load(), 0U);
  EXPECT_EQ(view->control().turn_holder.load(), 0U);
}

}  // namespace
}  // namespace softgpu::testing
