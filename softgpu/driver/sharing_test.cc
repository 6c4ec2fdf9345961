// Processes beside each other on one device: time slices, MPS, modelled time.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "softgpu/device/device.h"
#include "softgpu/device/time/mps.h"
#include "softgpu/driver/driver_testing.h"

namespace softgpu::testing {
namespace {

// What an observer sees, like NVML.
struct Seen {
  Machine machine = open_machine().value();
  Clients clients = Clients::open(machine).value();
  std::unique_ptr<DeviceView> view = DeviceView::open(machine, clients, 0).value();
  const ClientActivity& activity(unsigned slot) const { return view->control().activity[slot]; }
};

constexpr char kChargePtx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry softgpu_charge_train_step(.param .u64 lane_instructions, .param .u64 bytes) {
  trap;
}
)";

CUresult charge(std::uint64_t lane_instructions, std::uint64_t bytes) {
  static CUfunction function = [] {
    CUmodule module = nullptr;
    CUfunction found = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, kChargePtx), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&found, module, "softgpu_charge_train_step"), CUDA_SUCCESS);
    return found;
  }();
  void* parameters[] = {&lane_instructions, &bytes};
  return cuLaunchKernel(function, 1 << 20, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr);
}

CUdeviceptr make_zeroes(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8_v2(address, 0, bytes), CUDA_SUCCESS);
  return address;
}

// Computes until it is killed: waits for a flag that nobody sets. Returns when the kernel runs.
void spin() {
  static CUdeviceptr flag = make_zeroes(8);
  void* parameters[] = {&flag};
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_EQ(run_kernel("wait_flag", parameters, stream), CUDA_SUCCESS);
  const auto* running = reinterpret_cast<volatile std::uint32_t*>(flag + 4);
  while (*running == 0) std::this_thread::yield();
}

CUresult run_one() {
  EXPECT_EQ(run_kernel("empty", nullptr), CUDA_SUCCESS);
  return cuCtxSynchronize();
}

int attribute(CUdevice_attribute which) {
  int value = -1;
  EXPECT_EQ(cuDeviceGetAttribute(&value, which, 0), CUDA_SUCCESS);
  return value;
}

const Scenario kSpin("spin for ever", [] {
  use_device();
  spin();
});

// What a deterministic program does: kernels, copies, fills.
const Scenario kProgram("deterministic program", [] {
  use_device();
  const CUdeviceptr words = make_zeroes(4000);
  std::uint32_t count = 1000;
  void* parameters[] = {const_cast<CUdeviceptr*>(&words), &count};
  std::vector<std::uint32_t> host(1000);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(run_kernel("store_index", parameters, nullptr, 8, 128), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH_v2(host.data(), words, 4000), CUDA_SUCCESS);
  }
  EXPECT_EQ(charge(1'000'000'000'000, 5'000'000), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
});

TEST(TimeSlices, AnEndlessKernelDoesNotKeepOthersWaiting) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}});
  Fresh first("spin for ever");
  Fresh second("spin for ever");
  ASSERT_TRUE(first.ran() && second.ran());
  EXPECT_TRUE(Fresh("deterministic-in-fast-mode").ran());
}

const Scenario kFast("deterministic-in-fast-mode", [] {
  use_device();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(run_one(), CUDA_SUCCESS);
});

TEST(ModelledTime, IsTheSameFromRunToRun) {
  std::uint64_t kernel_ns = 0;
  std::uint64_t copy_ns = 0;
  for (int run = 0; run < 3; ++run) {
    const TemporaryHome home(
        Environment{{"SOFTGPU_MEMORY_SCALE", "64"}, {"SOFTGPU_MODE", "charge"}, {"SOFTGPU_TIME_SCALE", "0"}});
    Fresh program("deterministic program");
    ASSERT_TRUE(program.ran());
    const Seen seen;
    const ClientActivity& activity = seen.activity(0);
    EXPECT_EQ(activity.kernel_count.load(), 21U);
    EXPECT_EQ(activity.copy_count.load(), 20U);
    if (run == 0) {
      kernel_ns = activity.kernel_ns.load();
      copy_ns = activity.copy_ns.load();
      EXPECT_GT(kernel_ns, 127'655'000U);  // the synthetic kernel alone
      EXPECT_GT(copy_ns, 0U);
    }
    EXPECT_EQ(activity.kernel_ns.load(), kernel_ns);
    EXPECT_EQ(activity.copy_ns.load(), copy_ns);
  }
}

// A green context of 20 of the 80 SMs, current.
CUgreenCtx use_quarter() {
  use_device();
  CUdevResource all = {}, quarter = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  unsigned count = 1;
  EXPECT_EQ(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  EXPECT_EQ(cuDevSmResourceSplitByCount(&quarter, &count, &all, nullptr, 0, 20), CUDA_SUCCESS);
  EXPECT_EQ(cuDevResourceGenerateDesc(&description, &quarter, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxFromGreenCtx(&context, green), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  return green;
}

const Scenario kQuarter("synthetic kernel in a green context", [] {
  use_quarter();
  EXPECT_EQ(charge(1'000'000'000'000, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
});

TEST(ModelledTime, OfAGreenContextIsThatOfItsSms) {
  const TemporaryHome home(
      Environment{{"SOFTGPU_MEMORY_SCALE", "64"}, {"SOFTGPU_MODE", "charge"}, {"SOFTGPU_TIME_SCALE", "0"}});
  Fresh program("synthetic kernel in a green context");
  ASSERT_TRUE(program.ran());
  const std::uint64_t kernel_ns = Seen().activity(0).kernel_ns.load();
  EXPECT_GT(kernel_ns, 4 * 127'655'000U);
  EXPECT_LT(kernel_ns, 4 * 127'655'000U + 100'000);
}

DRIVER_TEST_IN(ChargeMode, AGreenContextsKernelsAreHeldForTheTimeOfItsSms,
               (Environment{{"SOFTGPU_MODE", "charge"}, {"SOFTGPU_TIME_SCALE", "0.1"}})) {
  use_quarter();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(charge(1'000'000'000'000, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(51));
}

DRIVER_TEST_IN(ChargeMode, SyntheticKernelsAreHeldForTheirTimeAndNotExecuted,
               (Environment{{"SOFTGPU_MODE", "charge"}, {"SOFTGPU_TIME_SCALE", "0.1"}})) {
  use_device();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(charge(1'000'000'000'000, 0), CUDA_SUCCESS);  // 127.7 ms
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);            // executed, it would trap
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(12));
  EXPECT_EQ(run_one(), CUDA_SUCCESS);
}

DRIVER_TEST_IN(ChargeMode, OtherModesExecuteThem, (Environment{{"SOFTGPU_MODE", "model"}})) {
  use_device();
  EXPECT_EQ(charge(1, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

class MpsProcesses : public ::testing::Test {
 protected:
  void start(const Mps& mps = {}) { ASSERT_TRUE(start_mps(open_machine().value(), mps)); }

  const TemporaryHome home_{Environment{{"SOFTGPU_MEMORY_SCALE", "64"}}};
};

const Scenario kShare("share of 30 percent", [] {
  ::setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30", 1);
  use_device();
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 24);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MPS_ENABLED), 1);
});

const Scenario kNoMps("another pipe directory", [] {
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/null", 1);
  ::setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30", 1);
  use_device();
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 80);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MPS_ENABLED), 0);
});

const Scenario kLimited("memory limit", [] {
  ::setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=4G", 1);  // 64 MiB of a device that is scaled to 256
  use_device();
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_LE(free_bytes, 64U << 20);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, 65 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&address, 40 << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&address, 40 << 20), CUDA_ERROR_OUT_OF_MEMORY);
});

const Scenario kRefused("one client too many", [] {
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
});

const Scenario kDraining("server not ready", [] {
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_MPS_SERVER_NOT_READY);
});

const Scenario kWrong("wrong percentage", [] {
  ::setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "most", 1);
  EXPECT_EQ(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
});

const Scenario kTrap("trap", [] {
  use_device();
  EXPECT_EQ(run_kernel("trapping", nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
});

// Computes, starts a neighbour that faults, and sees what becomes of its own context.
void watch_a_neighbour_fault(CUresult expected) {
  use_device();
  EXPECT_EQ(run_one(), CUDA_SUCCESS);
  EXPECT_TRUE(Fresh("trap").ran());
  EXPECT_EQ(cuCtxSynchronize(), expected);
}

const Scenario kContained("neighbour's fault is contained", [] { watch_a_neighbour_fault(CUDA_SUCCESS); });
const Scenario kSharedFault("neighbour's fault is shared", [] { watch_a_neighbour_fault(CUDA_ERROR_LAUNCH_FAILED); });

TEST_F(MpsProcesses, AClientSeesItsShareOfTheSms) {
  start();
  EXPECT_TRUE(Fresh("share of 30 percent").ran());
  EXPECT_TRUE(Fresh("another pipe directory").ran());
}

TEST_F(MpsProcesses, MemoryLimitsAreEnforced) {
  start();
  EXPECT_TRUE(Fresh("memory limit").ran());
}

TEST_F(MpsProcesses, ClientsAreCountedAndTheDeadMakeRoom) {
  start({.max_contexts = 1});
  Fresh first("share of 30 percent");
  EXPECT_TRUE(Fresh("one client too many").ran());
  first.kill();
  EXPECT_TRUE(Fresh("share of 30 percent").ran());
}

TEST_F(MpsProcesses, AWrongVariableFailsInitialisation) {
  start();
  EXPECT_TRUE(Fresh("wrong percentage").ran());
}

TEST_F(MpsProcesses, ComputeSideBySide) {
  start();
  const Fresh first("spin for ever");
  const Fresh second("spin for ever");
  ASSERT_TRUE(first.ran() && second.ran());
  const Seen seen;
  EXPECT_EQ(seen.activity(0).kernels.load(), 1U);
  EXPECT_EQ(seen.activity(1).kernels.load(), 1U);
  EXPECT_EQ(seen.view->control().turn_holder.load(), 0U);
}

TEST_F(MpsProcesses, AFaultIsContainedToItsClientWhereTheDaemonWasToldSo) {
  start({.faults_shared = false});
  EXPECT_TRUE(Fresh("neighbour's fault is contained").ran());
}

TEST_F(MpsProcesses, AFaultReachesAllClientsAndNoneIsServedUntilTheyAreGone) {
  start();
  {
    const Fresh hit("neighbour's fault is shared");
    EXPECT_TRUE(hit.ran());
    EXPECT_TRUE(Fresh("server not ready").ran());
  }
  EXPECT_TRUE(Fresh("share of 30 percent").ran());
}

}  // namespace
}  // namespace softgpu::testing
