// A context: the streams and the device memory of one program part on one device, and the error that stuck to it.
//
// A context knows nothing of modules, pools, managed memory, peers or captures. What of them belongs to it is a part
// (context_part.h) that the folders above put in, and that is closed with it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "softgpu/driver/context/context_fault.h"
#include "softgpu/driver/context/context_part.h"
#include "softgpu/driver/context/context_streams.h"
#include "softgpu/driver/context/green_streams.h"
#include "softgpu/driver/context/print_buffer.h"
#include "softgpu/driver/process.h"

namespace softgpu {

// What a program sets for a context as a whole.
struct ContextSettings {
  std::atomic<unsigned> flags{0};
  std::atomic<int> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> limits{};
  std::atomic<std::uint64_t> sms{~std::uint64_t{0}};  // the most that its kernels compute on: a green context's own

  void set_default_limits();
};

}  // namespace softgpu

// The handle. Never deleted, so that a stale handle is an error and not a crash; a primary context's is used again.
struct CUctx_st {
 public:
  CUctx_st(softgpu::DriverDevice& owner, unsigned flags);

  // Takes the context's own memory and makes it usable; OUT_OF_MEMORY when the device is full.
  CUresult activate();
  // Ends running kernels, then gives everything back. Of two threads that call it, one does it.
  void shut_down();
  bool active() const { return active_.load(std::memory_order_acquire); }

  softgpu::DriverDevice& owner() const { return owner_; }
  softgpu::Device& device() const { return *owner_.device; }
  // What its kernels may compute on.
  std::uint64_t sms() const { return std::min(settings.sms.load(std::memory_order_relaxed), device().sms()); }
  // Closed once the context is shut down.
  softgpu::Heap& heap() { return *heap_; }
  std::uint64_t id() const { return id_.load(std::memory_order_acquire); }

  // The error that stuck, else CUDA_SUCCESS. The first one wins; the text says where it happened.
  CUresult fault() {
    const CUresult of_primary = primary == nullptr ? CUDA_SUCCESS : primary->fault();
    return of_primary == CUDA_SUCCESS ? fault_.get() : of_primary;
  }
  void set_fault(CUresult error, const std::string& detail) {
    fault_.set(error, detail);
    if (primary != nullptr) primary->set_fault(error, detail);
  }
  const std::atomic<bool>& cancel() const { return fault_.cancel(); }
  // Whether work of the context must end: it has a fault or is being shut down. Who waits asks this and not cancel()
  // alone: nobody else may ask for fault(), and asking is how the context learns of its device's.
  bool must_stop() { return fault() != CUDA_SUCCESS || cancel(); }
  softgpu::PrintBuffer& prints() { return prints_; }

  softgpu::ContextStreams& streams() { return streams_; }
  // Runs behind what has been submitted to the stream, and waits; on the calling thread when nothing is pending.
  void run_now(softgpu::Stream& stream, const std::function<void()>& run);
  // Waits for everything submitted so far, to its green contexts or the green context's streams as well, prints what kernels printed, returns
  // fault().
  CUresult synchronise();

  // What a folder above keeps with the context (ContextParts::get).
  template <typename Part>
  Part& part() {
    return parts_.get<Part>();
  }

  // Whether the streams of one take the modules and events of the other: a green context is a view of its primary context.
  bool is_of(const CUctx_st& other) const { return &own() == &other.own(); }

  softgpu::ContextSettings settings;
  // Of what a green context is shown as; fixed before others know it.
  CUctx_st* primary = nullptr;
  std::shared_ptr<softgpu::GreenStreams> green;
  std::atomic<int> attachments{0};  // by cuCtxAttach
  int primary_references = 0;       // guarded by the lock of the primary context calls

 private:
  const CUctx_st& own() const { return primary == nullptr ? *this : *primary; }
  void wait_for_views();
  CUresult take_its_place();  // on the device, and memory there
  void give_its_place_back();

  softgpu::DriverDevice& owner_;
  std::atomic<std::uint64_t> id_{0};  // differs for every activation
  std::atomic<bool> active_{false};
  softgpu::ContextFault fault_;
  softgpu::PrintBuffer prints_;
  std::unique_ptr<softgpu::Heap> heap_;  // of all activations: other threads may be in the midst of a call
  std::vector<softgpu::PageRun> own_pages_;
  softgpu::ContextStreams streams_;
  softgpu::ContextParts parts_;
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

// The active contexts that its green contexts are shown as.
std::vector<CUcontext> views_of(const CUctx_st& primary);

// Names what is to happen whenever a program has synchronised with a stream or a context: pools give memory back. There is
// one such act, and it stays. after_synchronise() carries it out.
void on_synchronise(void (*act)());
void after_synchronise();

// Ends the kernels of all contexts, at process exit.
void cancel_all_contexts();

}  // namespace softgpu
