// Checkpoints: one process stops another and takes its memory off the device. What the two say to each other is a page of
// memory in the state folder. A test that waits for ever is ended by an alarm.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "softgpu/device/device.h"
#include "softgpu/driver/driver_testing.h"

namespace softgpu::testing {
namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kHeld = 20 * kMiB;  // of 64
constexpr char kScale[] = "256";
constexpr unsigned kPatienceSeconds = 60;

#define CHECKPOINT_TEST(name) DRIVER_TEST_IN(Checkpoint, name, (Environment{{"SOFTGPU_MEMORY_SCALE", kScale}}))

struct Board {
  std::atomic<int> target;        // a process
  std::atomic<unsigned> rounds;   // of the last worker that was told to write here
  std::atomic<unsigned> asked;    // how often its memory is to be compared
  std::atomic<unsigned> intact;   // how often it was, and nothing was lost
  std::atomic<unsigned> handled;  // calls of the process that checkpoints without end
};

Board& board() {
  static Board* mapped = [] {
    ::alarm(kPatienceSeconds);
    const int file = ::open((machine_home() + "/board").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Board)) != 0) std::abort();
    void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return static_cast<Board*>(memory);
  }();
  return *mapped;
}

template <typename Condition>
void wait_until(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
  return address;
}

std::vector<unsigned> pattern() {
  std::vector<unsigned> words(kHeld / 4);
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<unsigned>(i * 2654435761U) ^ static_cast<unsigned>(::getpid());
  return words;
}

void compare(CUdeviceptr data, const std::vector<unsigned>& want) {
  std::vector<unsigned> got(want.size());
  if (cuMemcpyDtoH_v2(got.data(), data, kHeld) == CUDA_SUCCESS && got == want) board().intact.fetch_add(1);
}

// Uses the device in every way that must stop: kernels, copies, allocations.
void work() {
  use_device();
  const std::vector<unsigned> want = pattern();
  const CUdeviceptr data = allocate(kHeld);
  const CUdeviceptr count = make_words(1);
  EXPECT_EQ(cuMemcpyHtoD_v2(data, want.data(), kHeld), CUDA_SUCCESS);
  std::thread([=] {
    use_device();
    for (unsigned round = 1, answered = 0;; ++round) {
      if (add_one(count) != CUDA_SUCCESS || word_at(count) != round) std::abort();
      CUdeviceptr extra = 0;
      if (cuMemAlloc_v2(&extra, 4 * kMiB) != CUDA_SUCCESS || cuMemFree_v2(extra) != CUDA_SUCCESS) std::abort();
      if (board().target == ::getpid()) board().rounds.store(round);
      if (board().asked == answered || board().target != ::getpid()) continue;
      answered = board().asked;
      compare(data, want);
    }
  }).detach();
}
const Scenario kWork("work on and on", work);

// Its memory is as it left it. REQUIRES: it runs.
void expect_intact(const Fresh& worker) {
  const unsigned before = board().intact;
  board().target = worker.pid();
  board().asked.fetch_add(1);
  wait_until([&] { return board().intact > before; });
}

unsigned rounds_of(const Fresh& worker) {
  board().rounds = 0;
  board().target = worker.pid();
  wait_until([] { return board().rounds != 0; });
  return board().rounds;
}

CUprocessState state_of(const Fresh& process) {
  CUprocessState state = CU_PROCESS_STATE_FAILED;
  EXPECT_EQ(cuCheckpointProcessGetState(process.pid(), &state), CUDA_SUCCESS);
  return state;
}

void take_off(const Fresh& process) {
  EXPECT_EQ(cuCheckpointProcessLock(process.pid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessCheckpoint(process.pid(), nullptr), CUDA_SUCCESS);
}

void put_back(const Fresh& process) {
  EXPECT_EQ(cuCheckpointProcessRestore(process.pid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessUnlock(process.pid(), nullptr), CUDA_SUCCESS);
}

CHECKPOINT_TEST(ALockedProcessStopsAndGoesOn) {
  use_device();
  Fresh worker("work on and on");
  rounds_of(worker);
  EXPECT_EQ(cuCheckpointProcessLock(worker.pid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(state_of(worker), CU_PROCESS_STATE_LOCKED);
  // It may still be about to write down what it has done; the next round it cannot do.
  const unsigned rounds = board().rounds;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(run_kernel("empty", nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_LE(board().rounds, rounds + 1);
  EXPECT_EQ(cuCheckpointProcessUnlock(worker.pid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(state_of(worker), CU_PROCESS_STATE_RUNNING);
  wait_until([&] { return board().rounds > rounds + 10; });
}

CHECKPOINT_TEST(MemoryLeavesAndReturnsWithItsContents) {
  use_device();
  const std::size_t all = free_bytes();
  Fresh worker("work on and on");
  const std::size_t free = free_bytes();
  EXPECT_LE(free + kHeld, all);
  take_off(worker);
  EXPECT_EQ(state_of(worker), CU_PROCESS_STATE_CHECKPOINTED);
  EXPECT_EQ(free_bytes(), all);  // its context's, too

  const CUdeviceptr own = allocate(48 * kMiB);  // where it was
  EXPECT_EQ(cuMemsetD8_v2(own, 0xEE, 48 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(own), CUDA_SUCCESS);

  put_back(worker);
  EXPECT_LE(free_bytes() + kHeld, all);
  expect_intact(worker);
}

CHECKPOINT_TEST(ManyProcessesShareADeviceForTwo) {
  use_device();
  std::vector<std::unique_ptr<Fresh>> workers;
  for (int i = 0; i < 6; ++i) {
    workers.push_back(std::make_unique<Fresh>("work on and on"));
    ASSERT_TRUE(workers.back()->ran());
    expect_intact(*workers.back());
    take_off(*workers.back());
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& worker : workers) {
      put_back(*worker);
      expect_intact(*worker);
      take_off(*worker);
    }
  }
}

// Seen on an H100 with driver 580.
CHECKPOINT_TEST(ARestoreThatFoundTheDeviceFullWasTheLastOfItsProcess) {
  use_device();
  const std::size_t all = free_bytes();
  Fresh worker("work on and on");
  take_off(worker);
  const CUdeviceptr own = allocate(48 * kMiB);  // in the way
  EXPECT_EQ(cuCheckpointProcessRestore(worker.pid(), nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(state_of(worker), CU_PROCESS_STATE_CHECKPOINTED);
  EXPECT_EQ(cuMemFree_v2(own), CUDA_SUCCESS);

  EXPECT_EQ(cuCheckpointProcessRestore(worker.pid(), nullptr), CUDA_ERROR_OPERATING_SYSTEM);
  EXPECT_EQ(cuCheckpointProcessUnlock(worker.pid(), nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuCheckpointProcessCheckpoint(worker.pid(), nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(state_of(worker), CU_PROCESS_STATE_CHECKPOINTED);
  worker.kill();
  EXPECT_EQ(free_bytes(), all);
  Fresh next("work on and on");
  take_off(next);
  put_back(next);
  expect_intact(next);
}

CHECKPOINT_TEST(WrongStatesAreRefusedAndChangeNothing) {
  use_device();
  Fresh worker("work on and on");
  const int pid = worker.pid();
  EXPECT_EQ(cuCheckpointProcessCheckpoint(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuCheckpointProcessRestore(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuCheckpointProcessUnlock(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuCheckpointProcessLock(pid, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessLock(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuCheckpointProcessRestore(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuCheckpointProcessCheckpoint(pid, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessLock(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuCheckpointProcessCheckpoint(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuCheckpointProcessUnlock(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  put_back(worker);
  expect_intact(worker);
}

CHECKPOINT_TEST(ArgumentsAreChecked) {
  CUprocessState state = CU_PROCESS_STATE_RUNNING;
  EXPECT_EQ(cuCheckpointProcessLock(1, nullptr), CUDA_ERROR_NOT_INITIALIZED);
  use_device();
  const int self = ::getpid();
  EXPECT_EQ(cuCheckpointProcessLock(0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCheckpointProcessLock(::getppid(), nullptr), CUDA_ERROR_INVALID_VALUE);  // no client
  EXPECT_EQ(cuCheckpointProcessGetState(::getppid(), &state), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCheckpointProcessGetState(self, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUcheckpointLockArgs lock = {};
  lock.reserved1[6] = 1;
  EXPECT_EQ(cuCheckpointProcessLock(self, &lock), CUDA_ERROR_INVALID_VALUE);
  CUcheckpointRestoreArgs restore = {};
  restore.reserved[0] = 1;
  EXPECT_EQ(cuCheckpointProcessRestore(self, &restore), CUDA_ERROR_NOT_SUPPORTED);
  int thread = 0;
  EXPECT_EQ(cuCheckpointProcessGetRestoreThreadId(self, &thread), CUDA_SUCCESS);
  EXPECT_EQ(thread, self);
}

CHECKPOINT_TEST(AProcessMayCheckpointItself) {
  use_device();
  const CUdeviceptr word = make_words(1);
  const std::size_t free = free_bytes();
  EXPECT_EQ(cuCheckpointProcessLock(::getpid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessCheckpoint(::getpid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessRestore(::getpid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessUnlock(::getpid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), free);
  EXPECT_EQ(add_one(word), CUDA_SUCCESS);
  EXPECT_EQ(word_at(word), 1U);
}

CHECKPOINT_TEST(WorkThatDoesNotEndKeepsALockOff) {
  use_device();
  const Fresh spinner("spin for ever");
  CUcheckpointLockArgs patience = {};
  patience.timeoutMs = 1;
  EXPECT_EQ(cuCheckpointProcessLock(spinner.pid(), &patience), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(state_of(spinner), CU_PROCESS_STATE_RUNNING);
}

CHECKPOINT_TEST(AKilledProcessFreesWhatItHas) {
  use_device();
  const std::size_t all = free_bytes();
  Fresh worker("work on and on");
  const int pid = worker.pid();
  take_off(worker);
  worker.kill();
  CUprocessState state = CU_PROCESS_STATE_RUNNING;
  EXPECT_EQ(cuCheckpointProcessGetState(pid, &state), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCheckpointProcessRestore(pid, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(free_bytes(), all);
  Fresh next("work on and on");  // has the slot, and nothing of what was done to the one before
  EXPECT_EQ(state_of(next), CU_PROCESS_STATE_RUNNING);
  expect_intact(next);
}

const Scenario kLock("lock the target", [] {
  use_device();
  EXPECT_EQ(cuCheckpointProcessLock(board().target, nullptr), CUDA_SUCCESS);
});

CHECKPOINT_TEST(ALockOutlivesWhoTookIt) {
  use_device();
  Fresh worker("work on and on");
  board().target = worker.pid();
  {
    Fresh locker("lock the target");
    EXPECT_TRUE(locker.ran());
  }
  EXPECT_EQ(state_of(worker), CU_PROCESS_STATE_LOCKED);
  EXPECT_EQ(cuCheckpointProcessUnlock(worker.pid(), nullptr), CUDA_SUCCESS);
  expect_intact(worker);
}

const Scenario kCycle("checkpoint the target without end", [] {
  use_device();
  std::thread([] {
    const int pid = board().target;
    while (true) {
      cuCheckpointProcessLock(pid, nullptr);
      cuCheckpointProcessCheckpoint(pid, nullptr);
      cuCheckpointProcessRestore(pid, nullptr);
      cuCheckpointProcessUnlock(pid, nullptr);
      board().handled.fetch_add(1);
    }
  }).detach();
});

// Whatever it was killed in the middle of, another finds one of the states, and goes on from it.
CHECKPOINT_TEST(WhoCheckpointsMayBeKilledAtAnyTime) {
  use_device();
  Fresh worker("work on and on");
  for (unsigned kill = 0; kill < 20; ++kill) {
    board().handled = 0;
    board().target = worker.pid();
    {
      Fresh killed("checkpoint the target without end");
      wait_until([&] { return board().handled > kill; });
    }
    if (state_of(worker) == CU_PROCESS_STATE_CHECKPOINTED) {
      EXPECT_EQ(cuCheckpointProcessRestore(worker.pid(), nullptr), CUDA_SUCCESS);
    }
    if (state_of(worker) == CU_PROCESS_STATE_LOCKED) {
      EXPECT_EQ(cuCheckpointProcessUnlock(worker.pid(), nullptr), CUDA_SUCCESS);
    }
    rounds_of(worker);
  }
  expect_intact(worker);
}

const Scenario kExport("export memory", [] {
  use_device();
  CUipcMemHandle handle = {};
  EXPECT_EQ(cuIpcGetMemHandle(&handle, allocate(4 * kMiB)), CUDA_SUCCESS);
});

CHECKPOINT_TEST(SharedMemoryCannotLeave) {
  use_device();
  const Fresh exporter("export memory");
  EXPECT_EQ(cuCheckpointProcessLock(exporter.pid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessCheckpoint(exporter.pid(), nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(state_of(exporter), CU_PROCESS_STATE_LOCKED);
  EXPECT_EQ(cuCheckpointProcessUnlock(exporter.pid(), nullptr), CUDA_SUCCESS);
}

// Managed memory is on the device as long as nobody needs the room; a checkpoint is somebody.
CHECKPOINT_TEST(ManagedPagesLeaveAndMigrateAgain) {
  const CUcontext context = use_device();
  CUdevice device = 0;
  EXPECT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
  CUdeviceptr words = 0;
  EXPECT_EQ(cuMemAllocManaged(&words, 8 * kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  const std::size_t before = free_bytes();
  EXPECT_EQ(cuMemPrefetchAsync_v2(words, 8 * kMiB, here, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - 8 * kMiB);
  EXPECT_EQ(cuCheckpointProcessLock(::getpid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessCheckpoint(::getpid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessRestore(::getpid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCheckpointProcessUnlock(::getpid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(store_index(words, 100, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(word_at(words + 4 * 99), 99U);
  EXPECT_NE(context, nullptr);
}

DRIVER_TEST_IN(Checkpoint, TakesTheTimeOfTheLink,
               (Environment{
                   {"SOFTGPU_MEMORY_SCALE", kScale}, {"SOFTGPU_MODE", "charge"}, {"SOFTGPU_TIME_SCALE", "0"}})) {
  use_device();
  Fresh worker("work on and on");
  const Machine machine = open_machine().value();
  const Clients clients = Clients::open(machine).value();
  const auto view = DeviceView::open(machine, clients, 0).value();
  const ClientActivity& activity = view->control().activity[0];  // ours: the first process of the machine
  const std::uint64_t before = activity.copy_ns.load();
  take_off(worker);
  const std::uint64_t out = activity.copy_ns.load() - before;
  EXPECT_GE(out, link_copy_ns(view->part().profile, kHeld));
  EXPECT_LE(out, link_copy_ns(view->part().profile, kHeld + 16 * kMiB));
  put_back(worker);
  EXPECT_GE(activity.copy_ns.load() - before, 2 * out - out / 4);
}

}  // namespace
}  // namespace softgpu::testing
