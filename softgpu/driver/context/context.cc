#include "softgpu/driver/context/context.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <thread>

#include "softgpu/mutex.h"
#include "softgpu/thread_owned.h"

namespace softgpu {
namespace {

// Handles ever given out. A registry instead of a magic word: a wild pointer is never read.
struct Registry {
  Mutex mutex;
  std::set<CUcontext> contexts SOFTGPU_GUARDED_BY(mutex);
  std::uint64_t next_id SOFTGPU_GUARDED_BY(mutex) = 1;
};

Registry& registry() {
  static auto* instance = new Registry;  // outlives the threads of streams
  return *instance;
}

// Registers the context and names its activation.
std::uint64_t enrol(CUcontext context) {
  Registry& all = registry();
  const LockGuard guard(all.mutex);
  all.contexts.insert(context);
  return all.next_id++;
}

// A kernel that is cancelled returns within this time; a process that exits does not wait longer.
constexpr std::chrono::milliseconds kExitPatience(200);

CUresult code_of(Activity::ContextRefusal refusal) {
  switch (refusal) {
    case Activity::ContextRefusal::kNone: return CUDA_SUCCESS;
    case Activity::ContextRefusal::kTooMany: return CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
    case Activity::ContextRefusal::kDraining: return CUDA_ERROR_MPS_SERVER_NOT_READY;
  }
  return CUDA_ERROR_UNKNOWN;
}

std::atomic<void (*)()> g_after_synchronise = nullptr;

}  // namespace

void ContextSettings::set_default_limits() {
  constexpr std::size_t kDefaults[CU_LIMIT_MAX] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};
  std::copy(std::begin(kDefaults), std::end(kDefaults), limits.begin());
}

std::vector<CUcontext>& context_stack() {
  return thread_owned<std::vector<CUcontext>>();
}

CUresult current_context(CUcontext& context) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const auto& stack = context_stack();
  if (stack.empty() || stack.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context = stack.back();
  return context->active() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult healthy_context(CUcontext& context) {
  SOFTGPU_TRY(current_context(context));
  wait_while_locked();
  return context->fault();
}

CUresult check_context(CUcontext context) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  Registry& all = registry();
  const LockGuard guard(all.mutex);
  if (!all.contexts.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return context->active() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUcontext find_context(const std::function<bool(CUctx_st&)>& wanted) {
  Registry& all = registry();
  const LockGuard guard(all.mutex);
  for (const CUcontext context : all.contexts) {
    if (context->active() && wanted(*context)) return context;
  }
  return nullptr;
}

std::vector<CUcontext> views_of(const CUctx_st& primary) {
  Registry& all = registry();
  const LockGuard guard(all.mutex);
  std::vector<CUcontext> views;
  for (const CUcontext context : all.contexts) {
    if (context->active() && context->primary == &primary) views.push_back(context);
  }
  return views;
}

void on_synchronise(void (*act)()) {
  g_after_synchronise.store(act, std::memory_order_release);
}

void after_synchronise() {
  if (auto* act = g_after_synchronise.load(std::memory_order_acquire)) act();
}

void cancel_all_contexts() {
  Registry& all = registry();
  const LockGuard guard(all.mutex);
  const auto end = std::chrono::steady_clock::now() + kExitPatience;
  for (const CUcontext context : all.contexts) {
    if (!context->active()) continue;
    context->prints().flush();
    context->set_fault(CUDA_ERROR_DEINITIALIZED, "");
  }
  for (const CUcontext context : all.contexts) {
    while (context->active() && !context->streams().idle() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace softgpu

CUctx_st::CUctx_st(softgpu::DriverDevice& owner, unsigned flags) : owner_(owner), fault_(*owner.device), parts_(*this) {
  settings.flags = flags;
}

CUresult CUctx_st::activate() {
  if (device().faults().lost() || softgpu::mapping_lost()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (device().attach() != softgpu::Device::Refusal::kNone) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (const CUresult refusal = take_its_place(); refusal != CUDA_SUCCESS) {
    device().detach();
    return refusal;
  }
  if (heap_ == nullptr) {
    heap_ = device().make_heap();
  } else {
    heap_->open();
  }
  streams_.reopen();
  settings.set_default_limits();
  prints_.set_capacity(settings.limits[CU_LIMIT_PRINTF_FIFO_SIZE]);
  id_ = softgpu::enrol(this);
  fault_.reset();
  active_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

// A green context has its primary context's.
CUresult CUctx_st::take_its_place() {
  if (primary != nullptr) return CUDA_SUCCESS;
  if (const CUresult refusal = softgpu::code_of(device().add_context()); refusal != CUDA_SUCCESS) return refusal;
  if (device().reserve_pages(device().context_bytes(), own_pages_)) return CUDA_SUCCESS;
  device().remove_context();
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void CUctx_st::give_its_place_back() {
  if (primary != nullptr) return;
  device().release_pages(own_pages_);
  device().remove_context();
  own_pages_.clear();
}

void CUctx_st::shut_down() {
  if (!active_.exchange(false)) return;  // another thread was first
  fault_.end_work();
  for (const CUcontext view : softgpu::views_of(*this)) view->shut_down();
  // Not for a green context's streams, which are the primary context's: nothing has ended their kernels.
  streams_.wait_helping();
  softgpu::after_synchronise();
  prints_.flush();
  streams_.close_all();
  parts_.close();
  heap_->close();
  give_its_place_back();
  device().detach();
}

void CUctx_st::run_now(softgpu::Stream& stream, const std::function<void()>& run) {
  const softgpu::CallPass pass;
  if (streams_.idle()) {
    run();
  } else {
    const softgpu::Point point = streams_.submit(stream, run);
    point.stream->wait_helping(point.sequence);
  }
  prints_.flush();
}

// A green context's streams are the primary context's; what is shown for it has streams of its own.
void CUctx_st::wait_for_views() {
  if (green != nullptr) {
    for (const auto& stream : green->all()) stream->wait_helping(stream->submitted());
  }
  for (const CUcontext view : softgpu::views_of(*this)) view->streams_.wait_helping();
}

CUresult CUctx_st::synchronise() {
  streams_.wait_helping();
  wait_for_views();
  softgpu::after_synchronise();
  prints_.flush();
  return fault();
}
