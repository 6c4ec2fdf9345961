#include "softgpu/driver/context/context.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "softgpu/driver/code/module.h"
#include "softgpu/driver/graph/capture.h"
#include "softgpu/driver/log.h"
#include "softgpu/driver/memory/managed_memory.h"
#include "softgpu/driver/memory/pool.h"
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

}  // namespace

void PrintBuffer::append(std::string_view text) {
  const LockGuard guard(mutex_);
  texts_.emplace_back(text);
  bytes_ += text.size();
  for (const std::size_t capacity = capacity_.load(); bytes_ > capacity && texts_.size() > 1; texts_.pop_front()) {
    bytes_ -= texts_.front().size();
  }
  filled_.store(true, std::memory_order_release);
}

void PrintBuffer::flush() {
  if (!filled_.load(std::memory_order_acquire)) return;
  // Keeps texts in order. Writing may take as long as the reader likes, and kernels that print take mutex_.
  static auto* writing = new Mutex;
  const LockGuard in_order(*writing);
  std::deque<std::string> texts;
  {
    const LockGuard guard(mutex_);
    texts.swap(texts_);
    bytes_ = 0;
  }
  for (const std::string& text : texts) std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  const LockGuard guard(mutex_);  // only now, so that other threads wait for what is being written
  filled_.store(!texts_.empty(), std::memory_order_release);
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

CUresult result_of_xid(unsigned xid) {
  switch (xid) {
    case 13: return CUDA_ERROR_LAUNCH_FAILED;    // graphics engine exception
    case 31: return CUDA_ERROR_ILLEGAL_ADDRESS;  // MMU fault
    case 48:                                     // double-bit ECC error
    case 94:                                     // contained and uncontained ECC errors
    case 95: return CUDA_ERROR_ECC_UNCORRECTABLE;
    case 74: return CUDA_ERROR_NVLINK_UNCORRECTABLE;
    case Faults::kFallenOffBus: return CUDA_ERROR_DEVICE_UNAVAILABLE;
    default: return CUDA_ERROR_UNKNOWN;
  }
}

void cancel_all_contexts() {
  Registry& all = registry();
  const LockGuard guard(all.mutex);
  const auto end = std::chrono::steady_clock::now() + kExitPatience;
  for (const CUcontext context : all.contexts) {
    if (!context->active()) continue;
    context->prints().flush();
    context->set_fault(CUDA_ERROR_DEINITIALIZED, "");
    while (!context->idle() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace softgpu

using softgpu::Point;
using softgpu::Stream;

CUctx_st::CUctx_st(softgpu::DriverDevice& owner, unsigned context_flags)
    : flags(context_flags),
      limits{},
      owner_(owner),
      space_(owner),
      legacy_(std::make_shared<Stream>(Stream::Kind::kLegacy, 0, 0, pending_)) {}

CUresult CUctx_st::activate() {
  if (device().faults().lost() || softgpu::mapping_lost()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (device().attach() != softgpu::Device::Refusal::kNone) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (const CUresult refusal = softgpu::code_of(device().add_context()); refusal != CUDA_SUCCESS) {
    device().detach();
    return refusal;
  }
  if (!device().reserve_pages(device().context_bytes(), own_pages_)) {
    device().remove_context();
    device().detach();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (heap_ == nullptr) {
    heap_ = device().make_heap();
  } else {
    heap_->open();
  }
  legacy_->reopen();
  constexpr std::size_t kDefaultLimits[CU_LIMIT_MAX] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};
  std::copy(std::begin(kDefaultLimits), std::end(kDefaultLimits), limits.begin());
  prints_.set_capacity(limits[CU_LIMIT_PRINTF_FIFO_SIZE]);
  id_ = softgpu::enrol(this);
  xid_count_ = device().faults().xid_count();
  shared_fault_count_ = device().shared_fault_count();
  fault_.store(CUDA_SUCCESS);
  cancel_.store(false);
  active_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

void CUctx_st::shut_down() {
  if (!active_.exchange(false)) return;  // another thread was first
  softgpu::graph::abandon_context(*this);
  cancel_.store(true);
  synchronise();
  std::vector<std::shared_ptr<Stream>> streams;
  std::set<CUmod_st*> modules;
  {
    const softgpu::LockGuard guard(mutex_);
    streams.swap(streams_);
    modules.swap(modules_);
    join_.reset();
  }
  legacy_->close();
  for (const auto& stream : streams) stream->close();
  for (CUmod_st* module : modules) module->unload();
  space_.disable_all_peers();
  softgpu::ManagedMemory::instance().release_all(this);
  {
    const softgpu::LockGuard guard(mutex_);
    kernel_heap_.reset();
  }
  heap_->close();
  device().release_pages(own_pages_);
  device().remove_context();
  own_pages_.clear();
  device().detach();
}

softgpu::ptx::DeviceHeap* CUctx_st::kernel_heap() {
  const softgpu::LockGuard guard(mutex_);
  if (kernel_heap_ != nullptr) return kernel_heap_.get();
  const std::size_t bytes = limits[CU_LIMIT_MALLOC_HEAP_SIZE];
  const std::uint64_t begin = heap_->allocate(std::max<std::size_t>(bytes, 1));
  if (begin != 0) kernel_heap_ = std::make_unique<softgpu::ptx::DeviceHeap>(begin, bytes);
  return kernel_heap_.get();
}

bool CUctx_st::has_kernel_heap() {
  const softgpu::LockGuard guard(mutex_);
  return kernel_heap_ != nullptr;
}

void CUctx_st::set_fault(CUresult error, const std::string& detail) {
  int none = CUDA_SUCCESS;
  if (!fault_.compare_exchange_strong(none, error)) return;
  cancel_.store(true);  // kernels of other streams of this context end too
  if (!detail.empty()) softgpu::log_line("error " + std::to_string(error) + ": " + detail);
}

// An Xid of the device, or another MPS client's fault.
void CUctx_st::take_device_fault() {
  softgpu::Device& its_device = device();
  const std::uint32_t xid_count = its_device.faults().xid_count();
  const std::uint32_t shared_fault_count = its_device.shared_fault_count();
  if (softgpu::mapping_lost()) {
    set_fault(CUDA_ERROR_DEVICE_UNAVAILABLE,
              "a file in " + its_device.machine().home +
                  " was truncated or its file system is full; make room or lower the memory with "
                  "SOFTGPU_MEMORY_SCALE, then run `softgpu reset`");
  } else if (xid_count != xid_count_) {
    const unsigned xid = its_device.faults().last_xid();
    set_fault(softgpu::result_of_xid(xid),
              "Xid " + std::to_string(xid) + " of GPU " + std::to_string(its_device.index()));
  } else if (its_device.share().faults_shared) {
    set_fault(static_cast<CUresult>(its_device.shared_fault()), "the fault of another MPS client");
  }
  xid_count_ = xid_count;
  shared_fault_count_ = shared_fault_count;
}

std::shared_ptr<Stream> CUctx_st::make_stream(Stream::Kind kind, int priority) {
  const softgpu::LockGuard guard(mutex_);
  std::erase_if(closed_streams_, [](const auto& closed) { return closed->idle(); });
  auto stream = std::make_shared<Stream>(kind, priority, next_stream_++, pending_);
  streams_.push_back(stream);
  return stream;
}

void CUctx_st::close_stream(const std::shared_ptr<Stream>& stream) {
  stream->close();
  const softgpu::LockGuard guard(mutex_);
  if (std::erase(streams_, stream) != 0 && !stream->idle()) closed_streams_.push_back(stream);
}

std::shared_ptr<Stream> CUctx_st::per_thread_stream() {
  // Closed when the thread ends or the context does, whichever is first.
  struct Own {
    CUctx_st* context;
    std::uint64_t id;
    std::shared_ptr<Stream> stream;
    ~Own() {
      if (softgpu::Process::get() != nullptr) context->close_stream(stream);  // not in a child of fork
    }
  };
  auto& own = softgpu::thread_owned<std::vector<std::unique_ptr<Own>>>();
  for (const auto& entry : own) {
    if (entry->id == id_) return entry->stream;
  }
  std::erase_if(own, [](const auto& entry) { return !entry->context->active() || entry->context->id() != entry->id; });
  own.push_back(std::unique_ptr<Own>(new Own{this, id_, make_stream(Stream::Kind::kBlocking, 0)}));
  return own.back()->stream;
}

// What the legacy stream's rule adds: it waits for all blocking streams, and they for it.
std::vector<Point> CUctx_st::legacy_order(const Stream& stream) {
  std::vector<Point> after;
  if (stream.kind == Stream::Kind::kLegacy) {
    for (const auto* streams : {&streams_, &closed_streams_}) {
      for (const auto& other : *streams) {
        if (other->kind == Stream::Kind::kBlocking && !other->idle()) after.push_back(other->last());
      }
    }
  } else if (stream.kind == Stream::Kind::kBlocking && !legacy_->idle()) {
    after.push_back(legacy_->last());
  }
  return after;
}

Point CUctx_st::submit(Stream& stream, std::function<void()> run, std::vector<Point> after) {
  const softgpu::CallPass pass;  // before mutex_, which operations that are under way may need
  const softgpu::LockGuard guard(mutex_);
  std::vector<Point> order = idle() ? std::vector<Point>() : legacy_order(stream);
  order.insert(order.end(), std::make_move_iterator(after.begin()), std::make_move_iterator(after.end()));
  const std::uint64_t sequence = stream.submit({std::move(run), std::move(order)});
  return {stream.shared_from_this(), sequence};
}

void CUctx_st::run_now(Stream& stream, const std::function<void()>& run) {
  const softgpu::CallPass pass;
  if (idle()) {
    run();
  } else {
    const Point point = submit(stream, run);
    point.stream->wait_helping(point.sequence);
  }
  prints_.flush();
}

bool CUctx_st::stream_idle(const Stream& stream) {
  if (!stream.idle()) return false;
  if (stream.kind != Stream::Kind::kLegacy) return true;
  const softgpu::LockGuard guard(mutex_);
  return legacy_order(stream).empty();
}

CUresult CUctx_st::synchronise() {
  std::vector<Point> points;
  if (!idle()) {
    const softgpu::LockGuard guard(mutex_);
    points.push_back(legacy_->last());
    for (const auto& stream : streams_) points.push_back(stream->last());
    for (const auto& stream : closed_streams_) points.push_back(stream->last());
  }
  for (const Point& point : points) point.stream->wait_helping(point.sequence);
  softgpu::Pools::instance().after_synchronise();
  prints_.flush();
  return fault();
}

Point CUctx_st::submit_after_all(std::function<void()> run) {
  const softgpu::CallPass pass;
  const softgpu::LockGuard guard(mutex_);
  std::vector<Point> all = {legacy_->last()};
  for (const auto* streams : {&streams_, &closed_streams_}) {
    for (const auto& stream : *streams) all.push_back(stream->last());
  }
  if (join_ == nullptr) {
    join_ = std::make_shared<Stream>(Stream::Kind::kNonBlocking, 0, next_stream_++, pending_);
    streams_.push_back(join_);
  }
  return {join_, join_->submit({std::move(run), std::move(all)})};
}

void CUctx_st::hold_all(const Point& point) {
  const softgpu::CallPass pass;
  const softgpu::LockGuard guard(mutex_);
  if (point.reached()) return;
  legacy_->submit({[] {}, {point}});
  for (const auto& stream : streams_) stream->submit({[] {}, {point}});
}

void CUctx_st::add_module(CUmod_st* module) {
  const softgpu::LockGuard guard(mutex_);
  modules_.insert(module);
}

void CUctx_st::remove_module(CUmod_st* module) {
  const softgpu::LockGuard guard(mutex_);
  modules_.erase(module);
}
