// GPU time and the leash against a driver of the test's own: contexts that end, and streams of several.
#include "shim/gpu_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "shim/driver.h"
#include "shim/leash.h"

namespace fairlead::shim {
namespace {

constexpr std::uintptr_t kFirstEvent = 0x1000;

CUcontext context_named(std::uintptr_t name) {
  return reinterpret_cast<CUcontext>(name);
}
CUstream stream_named(std::uintptr_t name) {
  return reinterpret_cast<CUstream>(name);
}

std::atomic<std::uintptr_t> events{kFirstEvent}, ended{0};
std::atomic<int> asked_of_the_dead{0};
thread_local CUcontext current = nullptr;

CUresult get_current(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
CUresult push(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext* context) {
  *context = std::exchange(current, context_named(1));
  return CUDA_SUCCESS;
}
// A stream is named after its context.
CUresult context_of(CUstream stream, CUcontext* context) {
  *context = context_named(reinterpret_cast<std::uintptr_t>(stream) / 10);
  return CUDA_SUCCESS;
}
CUresult create_event(CUevent* event, unsigned int) {
  *event = reinterpret_cast<CUevent>(events.fetch_add(1));
  return CUDA_SUCCESS;
}
CUresult record(CUevent, CUstream) {
  return CUDA_SUCCESS;
}
CUresult query_event(CUevent event) {
  if (reinterpret_cast<std::uintptr_t>(event) < ended.load()) asked_of_the_dead.fetch_add(1);
  return CUDA_ERROR_NOT_READY;
}
CUresult query_stream(CUstream) {
  return CUDA_ERROR_NOT_READY;
}

// A driver whose work never ends. The real one is back afterwards.
class GpuTimeTest : public testing::Test {
 protected:
  void SetUp() override {
    enter_process();  // before the page is written: it may be another afterwards
    put(Symbol::cuCtxGetCurrent, reinterpret_cast<void*>(get_current));
    put(Symbol::cuCtxPushCurrent_v2, reinterpret_cast<void*>(push));
    put(Symbol::cuCtxPopCurrent_v2, reinterpret_cast<void*>(pop));
    put(Symbol::cuStreamGetCtx, reinterpret_cast<void*>(context_of));
    put(Symbol::cuEventCreate, reinterpret_cast<void*>(create_event));
    put(Symbol::cuEventRecord, reinterpret_cast<void*>(record));
    put(Symbol::cuEventQuery, reinterpret_cast<void*>(query_event));
    put(Symbol::cuStreamQuery, reinterpret_cast<void*>(query_stream));
    current = context_named(1);
  }
  void TearDown() override {
    page().pace.store(0);
    end_context(1);
    end_context(2);
    for (std::uint16_t i = 0; i < kSymbols; ++i) driver_detail::addresses[i].store(nullptr);
    ended.store(0);
  }
  static void put(Symbol symbol, void* function) {
    driver_detail::addresses[static_cast<std::uint16_t>(symbol)].store(function);
  }
  static void end_context(std::uintptr_t name) {
    const ContextEnd end;
    ended.store(events.load());
    const Bypass own_work;
    forget_work(context_named(name));
  }
};

TEST_F(GpuTimeTest, NothingIsAskedOfEventsThatWentWithTheirContext) {
  page().pace.store(wire::kPaceLeash);
  {
    const Passage passage;
    for (std::uint64_t key : {7, 8}) {  // the second ties the link of the first off
      EXPECT_TRUE(note_kernel(passage.slot(), stream_named(10), [&] { return key; }));
      leash_launched(stream_named(10));
    }
  }
  asked_of_the_dead.store(0);
  end_context(1);
  EXPECT_EQ(asked_of_the_dead.load(), 0);
  EXPECT_EQ(page().busy.load(), 0U);
}

TEST_F(GpuTimeTest, WorkOfSeveralContextsAtOnceIsSeenInEach) {
  const Passage passage;
  for (std::uintptr_t stream : {11, 21}) note_work_elsewhere(stream_named(stream));
  EXPECT_EQ(page().busy.load(), 2U);
  EXPECT_EQ(current, context_named(1));
}

}  // namespace
}  // namespace fairlead::shim
