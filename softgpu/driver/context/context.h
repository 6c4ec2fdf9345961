// A context: the streams, memory and modules of one program part on one device, and the error that stuck to it.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "softgpu/device/mapping_guard.h"
#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/process.h"
#include "softgpu/driver/stream/stream.h"
#include "softgpu/mutex.h"

struct CUmod_st;

namespace softgpu {

// Text printed by kernels, kept until the program synchronises, launches or loads a module. As on hardware it is a ring:
// what exceeds its capacity (CU_LIMIT_PRINTF_FIFO_SIZE) takes the place of the oldest, in whole lines. Bytes are those
// of the text, where hardware counts formats and arguments. Thread-safe.
class PrintBuffer {
 public:
  // For text that is still to come. The last line is kept, however long.
  void set_capacity(std::size_t bytes) { capacity_.store(bytes); }
  void append(std::string_view text);
  // Writes everything to stdout.
  void flush();

 private:
  std::atomic<std::size_t> capacity_{1 << 20};
  std::atomic<bool> filled_{false};
  Mutex mutex_;
  std::deque<std::string> texts_ SOFTGPU_GUARDED_BY(mutex_);  // lines
  std::size_t bytes_ SOFTGPU_GUARDED_BY(mutex_) = 0;          // of texts_
};

}  // namespace softgpu

// The handle. Never deleted, so that a stale handle is an error and not a crash; a primary context's is used again.
struct CUctx_st {
 public:
  CUctx_st(softgpu::DriverDevice& owner, unsigned context_flags);

  // Takes the context's own memory and makes it usable; OUT_OF_MEMORY when the device is full.
  CUresult activate();
  // Ends running kernels, then gives everything back. Of two threads that call it, one does it.
  void shut_down();
  bool active() const { return active_.load(std::memory_order_acquire); }

  softgpu::DriverDevice& owner() const { return owner_; }
  softgpu::Device& device() const { return *owner_.device; }
  // Closed once the context is shut down.
  softgpu::Heap& heap() { return *heap_; }
  // Where malloc in its kernels takes memory, of CU_LIMIT_MALLOC_HEAP_SIZE bytes; made when first asked for. Null when the
  // device is full.
  softgpu::ptx::DeviceHeap* kernel_heap();
  bool has_kernel_heap();
  // What its kernels may access.
  softgpu::ContextSpace& space() { return space_; }
  std::uint64_t id() const { return id_.load(std::memory_order_acquire); }

  // The error that stuck, else CUDA_SUCCESS. The first one wins; the text says where it happened.
  CUresult fault() {
    if (device().faults().xid_count() != xid_count_ || device().shared_fault_count() != shared_fault_count_ ||
        softgpu::mapping_lost()) {
      take_device_fault();
    }
    return static_cast<CUresult>(fault_.load(std::memory_order_acquire));
  }
  void set_fault(CUresult error, const std::string& detail);
  const std::atomic<bool>& cancel() const { return cancel_; }
  // Whether work of the context must end: it has a fault or is being shut down. Who waits asks this and not cancel()
  // alone: nobody else may ask for fault(), and asking is how the context learns of its device's.
  bool must_stop() { return fault() != CUDA_SUCCESS || cancel(); }
  softgpu::PrintBuffer& prints() { return prints_; }

  const std::shared_ptr<softgpu::Stream>& legacy_stream() const { return legacy_; }
  std::shared_ptr<softgpu::Stream> make_stream(softgpu::Stream::Kind kind, int priority);
  void close_stream(const std::shared_ptr<softgpu::Stream>& stream);
  // The calling thread's default stream.
  std::shared_ptr<softgpu::Stream> per_thread_stream();

  // Appends `run` to the stream, after what the rules of the legacy stream demand and after `after`.
  softgpu::Point submit(softgpu::Stream& stream, std::function<void()> run, std::vector<softgpu::Point> after = {});
  // The same, and waits. Runs on the calling thread when nothing is pending.
  void run_now(softgpu::Stream& stream, const std::function<void()>& run);
  // Whether everything submitted to the stream has completed; for the legacy stream, to all blocking ones.
  bool stream_idle(const softgpu::Stream& stream);
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Waits for everything submitted so far, prints what kernels printed, returns fault().
  CUresult synchronise();

  // Queues `run` behind everything submitted so far, and makes everything submitted later wait for `point`.
  softgpu::Point submit_after_all(std::function<void()> run);
  void hold_all(const softgpu::Point& point);

  void add_module(CUmod_st* module);
  void remove_module(CUmod_st* module);

  std::atomic<unsigned> flags;
  std::atomic<int> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<int> attachments{0};  // by cuCtxAttach
  int primary_references = 0;       // guarded by the lock of the primary context calls
  std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> limits;

 private:
  void take_device_fault();
  std::vector<softgpu::Point> legacy_order(const softgpu::Stream& stream) SOFTGPU_REQUIRES(mutex_);

  softgpu::DriverDevice& owner_;
  std::atomic<std::uint64_t> id_{0};  // differs for every activation
  std::atomic<bool> active_{false};
  std::atomic<int> fault_{CUDA_SUCCESS};
  // What the device had suffered when the context was activated.
  std::atomic<std::uint32_t> xid_count_{0};
  std::atomic<std::uint32_t> shared_fault_count_{0};
  std::atomic<bool> cancel_{false};
  std::atomic<std::uint64_t> pending_{0};
  softgpu::PrintBuffer prints_;
  std::unique_ptr<softgpu::Heap> heap_;  // of all activations: other threads may be in the midst of a call
  softgpu::ContextSpace space_;
  std::vector<softgpu::PageRun> own_pages_;
  const std::shared_ptr<softgpu::Stream> legacy_;  // the same

  softgpu::Mutex mutex_;  // also of the order of submissions
  std::vector<std::shared_ptr<softgpu::Stream>> streams_ SOFTGPU_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<softgpu::Stream>> closed_streams_
      SOFTGPU_GUARDED_BY(mutex_);  // destroyed by the program with work left
  std::set<CUmod_st*> modules_ SOFTGPU_GUARDED_BY(mutex_);
  std::unique_ptr<softgpu::ptx::DeviceHeap> kernel_heap_ SOFTGPU_GUARDED_BY(mutex_);  // in memory of heap_
  std::uint64_t next_stream_ SOFTGPU_GUARDED_BY(mutex_) = 1;
  std::shared_ptr<softgpu::Stream> join_
      SOFTGPU_GUARDED_BY(mutex_);  // executes submit_after_all(); made when first needed
};

namespace softgpu {

// The calling thread's stack of current contexts.
std::vector<CUcontext>& context_stack();

// The current context, whatever its state: NOT_INITIALIZED, INVALID_CONTEXT or CONTEXT_IS_DESTROYED.
CUresult current_context(CUcontext& context);
// The current context, usable: also its fault.
CUresult healthy_context(CUcontext& context);
// Checks a handle that a caller gave.
CUresult check_context(CUcontext context);

// Some active context for which `wanted` holds, or null.
CUcontext find_context(const std::function<bool(CUctx_st&)>& wanted);

// The error that contexts get for an Xid of their device.
CUresult result_of_xid(unsigned xid);

// Ends the kernels of all contexts, at process exit.
void cancel_all_contexts();

}  // namespace softgpu
