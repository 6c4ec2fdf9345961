#include "softgpu/ptx/launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "softgpu/mutex.h"
#include "softgpu/ptx/block.h"
#include "softgpu/ptx/float_environment.h"
#include "softgpu/thread_owned.h"

namespace softgpu::ptx {
namespace {

// Instructions between two looks at the clock: some 100 us of most code. A constant, so that what a program counts does
// not depend on how fast it runs.
constexpr int kStep = 1 << 14;
constexpr int kCooperativeTurn = 1 << 11;  // instructions of a warp whose block others wait for
constexpr std::size_t kCoresidentBlocks = 16;
constexpr std::size_t kLargestIdleBlock = std::size_t{16} << 20;
constexpr std::size_t kCallDepth = 64;
constexpr std::size_t kWorkspaceBytes = 4096;
constexpr std::uint64_t kHelpAfterNs = 50'000;  // starting a thread costs about as much

std::uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// What a host thread keeps from launch to launch.
struct ThreadState {
  std::vector<std::unique_ptr<BlockRunner>> idle;
  std::vector<AddressSpace::Extent> extents;
  std::vector<std::byte> parameters;
};
// A function that needs the state again and again asks once: asking goes through the thread's pointer every time.
ThreadState& thread_state() {
  return thread_owned<ThreadState>();
}

// Makes all extents empty, as bytes: a loop over them takes a fifth of the time of an empty launch.
void forget(std::vector<AddressSpace::Extent>& extents) {
  static_assert(std::is_trivially_copyable_v<AddressSpace::Extent>);
  std::memset(static_cast<void*>(extents.data()), 0, extents.size() * sizeof(AddressSpace::Extent));
}

class Grid {
 public:
  Grid(const Program& program, const Code& entry, const KernelInfo& info, const AddressSpace& memory,
       const Launch& launch);
  Outcome run();

 private:
  using Resident = std::vector<std::unique_ptr<BlockRunner>>;

  void work(bool may_call_helpers);
  void drop_stale_extents(std::uint64_t& epoch, ThreadState& own) const;
  bool step(std::unique_ptr<BlockRunner>& runner, Outcome& counts, ThreadState& own);
  bool take_block(std::uint64_t& index);
  std::unique_ptr<BlockRunner> admit(std::uint64_t index, ThreadState& own);
  void retire(std::unique_ptr<BlockRunner> runner, Outcome& counts, ThreadState& own);
  bool must_stop();
  void report(FaultKind kind, const BlockRunner* runner, const char* why = "");
  std::string describe(const BlockRunner& runner) const;
  void call_helpers();

  const InstructionSet& isa_ = instruction_set();
  const AddressSpace& memory_;
  const Launch& launch_;
  LaunchState state_;
  std::uint64_t blocks_;
  std::uint64_t started_ns_ = 0;
  std::vector<std::byte> workspace_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  Outcome outcome_ SOFTGPU_GUARDED_BY(mutex_);
  std::vector<std::thread> helpers_;
};

Grid::Grid(const Program& program, const Code& entry, const KernelInfo& info, const AddressSpace& memory,
           const Launch& launch)
    : memory_(memory), launch_(launch), blocks_(std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z) {
  state_.program = &program;
  state_.entry = &entry;
  state_.memory = &memory;
  state_.launch = &launch;
  state_.static_shared_bytes = align_up(info.static_shared_bytes, 16);
  state_.shared_bytes = state_.static_shared_bytes + launch.dynamic_shared_bytes;
  // A copy: a kernel may write through a generic address of a parameter.
  std::vector<std::byte>& parameters = thread_state().parameters;
  parameters.assign(launch.parameters.begin(), launch.parameters.end());
  parameters.resize(info.parameter_bytes);
  state_.parameters = parameters;
  const std::size_t depth = entry.calls ? kCallDepth : 0;
  state_.frame_bytes = entry.frame_bytes + depth * program.deepest_frame;
  state_.local_bytes = entry.local_bytes + depth * program.deepest_local;
  if (launch.cooperative) {
    workspace_.resize(kWorkspaceBytes + kRowAlignment);
    const auto begin = align_up(reinterpret_cast<std::uintptr_t>(workspace_.data()), kRowAlignment);
    state_.workspace = {begin, begin + kWorkspaceBytes};
  }
}

bool Grid::take_block(std::uint64_t& index) {
  index = next_.fetch_add(1, std::memory_order_relaxed);
  return index < blocks_;
}

std::unique_ptr<BlockRunner> Grid::admit(std::uint64_t index, ThreadState& own) {
  std::unique_ptr<BlockRunner> runner;
  if (own.idle.empty()) {
    runner = std::make_unique<BlockRunner>();
  } else {
    runner = std::move(own.idle.back());
    own.idle.pop_back();
  }
  if (runner->start(state_, own.extents.data(), index)) return runner;
  report(FaultKind::kLaunchFailed, nullptr, ": no host memory for a block's registers, local and shared memory");
  return nullptr;
}

void Grid::retire(std::unique_ptr<BlockRunner> runner, Outcome& counts, ThreadState& own) {
  runner->take_counts(counts);
  const bool is_small = runner->memory_bytes() <= kLargestIdleBlock;
  if (is_small && own.idle.size() < kCoresidentBlocks) own.idle.push_back(std::move(runner));
}

// Memory may have been freed since the last look.
void Grid::drop_stale_extents(std::uint64_t& epoch, ThreadState& own) const {
  if (memory_.epoch() == epoch) return;
  epoch = memory_.epoch();
  forget(own.extents);
}

// True while the block is suspended; else it has ended and the runner is gone.
bool Grid::step(std::unique_ptr<BlockRunner>& runner, Outcome& counts, ThreadState& own) {
  const BlockProgress progress = runner->step(isa_, {kStep, launch_.cooperative ? kCooperativeTurn : kStep});
  if (progress == BlockProgress::kSuspended) return true;
  if (progress == BlockProgress::kFaulted) report(runner->faulted_warp()->fault.kind, runner.get());
  if (progress == BlockProgress::kDeadlocked) report(FaultKind::kLaunchTimeout, runner.get());
  retire(std::move(runner), counts, own);
  return false;
}

// Blocks take turns. One that has not ended for long may be waiting for a later one: another is started beside it.
void Grid::work(bool may_call_helpers) {
  const FloatEnvironment environment;
  ThreadState& own = thread_state();
  own.extents.resize(state_.program->cache_slots + 1);
  forget(own.extents);
  std::uint64_t epoch = memory_.epoch();
  const std::size_t most = launch_.cooperative ? SIZE_MAX : kCoresidentBlocks;
  Resident resident;
  Outcome counts;
  std::uint64_t index = 0;
  std::size_t at = 0;
  bool more = true, wants_another = true;
  while (!must_stop()) {
    if (wants_another && more && resident.size() < most && (more = take_block(index))) {
      resident.push_back(admit(index, own));
      if (resident.back() == nullptr) resident.pop_back();
    }
    if (resident.empty()) break;
    drop_stale_extents(epoch, own);
    if (at >= resident.size()) at = 0;
    if (step(resident[at], counts, own)) {
      wants_another = resident[at]->needs_company() || launch_.cooperative;
      ++at;
    } else {
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(at));
      wants_another = resident.empty() || launch_.cooperative;
    }
    if (may_call_helpers && helpers_.empty()) call_helpers();
  }
  for (auto& runner : resident) retire(std::move(runner), counts, own);
  const LockGuard lock(mutex_);
  outcome_.warp_instructions += counts.warp_instructions;
  outcome_.lane_instructions += counts.lane_instructions;
  outcome_.global_bytes += counts.global_bytes;
}

void Grid::call_helpers() {
  const std::uint64_t taken = next_.load(std::memory_order_relaxed);
  if (taken >= blocks_ || now_ns() - started_ns_ < kHelpAfterNs) return;
  const std::uint64_t wanted = std::min<std::uint64_t>(launch_.workers - 1, blocks_ - taken);
  for (std::uint64_t i = 0; i < wanted; ++i) helpers_.emplace_back([this] { work(false); });
}

bool Grid::must_stop() {
  if (stop_.load(std::memory_order_relaxed)) return true;
  if (launch_.pause != nullptr) (*launch_.pause)();
  const auto is_set = [](const std::atomic<bool>* flag) {
    return flag != nullptr && flag->load(std::memory_order_relaxed);
  };
  if (is_set(launch_.cancel) || is_set(launch_.also_cancel)) {
    report(FaultKind::kCancelled, nullptr);
    return true;
  }
  if (launch_.deadline_ns != nullptr && now_ns() > launch_.deadline_ns->load()) {
    report(FaultKind::kLaunchTimeout, nullptr);
    return true;
  }
  return false;
}

void Grid::report(FaultKind kind, const BlockRunner* runner, const char* why) {
  stop_.store(true, std::memory_order_relaxed);
  const LockGuard lock(mutex_);
  if (outcome_.fault != FaultKind::kNone) return;
  outcome_.fault = kind;
  outcome_.fault_detail = "kernel " + state_.entry->name + why;
  if (runner == nullptr) return;
  if (const Warp* warp = runner->faulted_warp()) outcome_.fault_address = warp->fault.address;
  outcome_.fault_detail = describe(*runner);
}

std::string triple(const Dim3& dim) {
  return "(" + std::to_string(dim.x) + "," + std::to_string(dim.y) + "," + std::to_string(dim.z) + ")";
}

std::string Grid::describe(const BlockRunner& runner) const {
  std::string text = "kernel " + state_.entry->name + ", block " + triple(runner.block().id);
  const Warp* warp = runner.faulted_warp();
  if (warp == nullptr) return text + ": no thread can run; a barrier waits for threads that never come";
  const int lane = warp->fault.lane;
  const Dim3 thread{warp->thread_ids[0][lane], warp->thread_ids[1][lane], warp->thread_ids[2][lane]};
  text += ", thread " + triple(thread);
  if (warp->fault.instruction != nullptr) text += ", PTX line " + std::to_string(warp->fault.instruction->line);
  if (!warp->fault.detail.empty()) text += ": " + warp->fault.detail;
  return text;
}

Outcome Grid::run() {
  if (launch_.workers > 1) started_ns_ = now_ns();
  work(launch_.workers > 1);
  for (std::thread& helper : helpers_) helper.join();
  state_.program->printer.flush();
  const LockGuard lock(mutex_);
  return std::move(outcome_);
}

}  // namespace

Outcome run_grid(const Program& program, const Code& entry, const KernelInfo& info, const AddressSpace& memory,
                 const Launch& launch) {
  return Grid(program, entry, info, memory, launch).run();
}

}  // namespace softgpu::ptx
