#include "softgpu/driver/stream/shared_event.h"

#include <cstring>

namespace softgpu {

SharedEvents* shared_events() {
  static SharedEvents* events = [] {
    Process& process = *Process::get();
    auto opened = SharedEvents::open(process.machine(), process.clients(), process.devices().front()->device->self());
    return opened ? new SharedEvents(*opened) : nullptr;
  }();
  return events;
}

CUresult record_shared(CUevent event, const StreamUse& use) {
  SharedEvents& events = *shared_events();
  const SharedEvents::Name name = *event->shared;
  const std::uint64_t number = events.submit(name);
  if (use.context->streams().idle()) {
    events.complete(name, number);
  } else {
    use.context->streams().submit(*use.stream, [&events, name, number] { events.complete(name, number); });
  }
  return CUDA_SUCCESS;
}

void wait_shared(CUevent event) {
  const SharedEvents& events = *shared_events();
  events.wait(*event->shared, events.last(*event->shared), [event] { return event->context->must_stop(); });
}

void queue_wait_shared(CUevent event, const StreamUse& use) {
  const SharedEvents& events = *shared_events();
  const SharedEvents::Name name = *event->shared;
  const std::uint64_t number = events.last(name);
  if (events.reached(name, number)) return;
  CUcontext context = use.context;
  context->streams().submit(*use.stream, [&events, name, number, context] {
    events.wait(name, number, [context] { return context->must_stop(); });
  });
}

}  // namespace softgpu

using softgpu::Events;
using softgpu::shared_events;
using softgpu::SharedEvents;

namespace {

constexpr std::uint32_t kHandleMagic = 0x69706532;  // "ipe2"

struct HandleContent {
  std::uint32_t magic;
  std::uint32_t creator;  // Owner::pack
  std::uint32_t row;
  std::uint32_t use;
};
static_assert(sizeof(HandleContent) <= sizeof(CUipcEventHandle));

}  // namespace

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  CUcontext context = nullptr;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::healthy_context(context));
  if (!Events::valid(event) || !event->shared) return CUDA_ERROR_INVALID_HANDLE;
  const SharedEvents::Name name = *event->shared;
  const HandleContent content = {kHandleMagic, shared_events()->creator(name).pack(), name.row, name.use};
  *handle = {};
  std::memcpy(handle->reserved, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  CUcontext context = nullptr;
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::healthy_context(context));
  HandleContent content = {};
  std::memcpy(&content, handle.reserved, sizeof content);
  if (content.magic != kHandleMagic) return CUDA_ERROR_INVALID_HANDLE;
  if (content.creator == context->device().self().pack()) return CUDA_ERROR_INVALID_CONTEXT;
  const SharedEvents* events = shared_events();
  const SharedEvents::Name name = {content.row, content.use};
  if (events == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  if (!events->valid(name) || events->creator(name).pack() != content.creator) return CUDA_ERROR_INVALID_HANDLE;
  CUevent made = Events::take();
  made->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  made->context = context;
  made->shared = name;
  *event = made;
  return CUDA_SUCCESS;
}
