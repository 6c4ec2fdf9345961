// Streams and events: order, waiting, timing. What the documentation of the driver API states.
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/scene.h"

namespace softgpu::conformance {
namespace {

unsigned chain(unsigned count) {
  unsigned word = 0;
  for (unsigned i = 0; i < count; ++i) word = word * 3 + i;
  return word;
}

void one_stream_is_ordered(Test& test) {
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto word = test.zeros<unsigned>(1);
  for (unsigned i = 0; i < 100; ++i) scene.launch("add_to", stream, word, i);
  unsigned got = 0;
  test.expect_code("copy", driver().cuMemcpyDtoHAsync(&got, word.address, 4, stream), CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.expect_value("after 100 kernels", got, chain(100));
}

void queries(Test& test) {
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = scene.event();
  test.expect_code("an event never recorded", driver().cuEventQuery(event), CUDA_SUCCESS);
  test.expect_code("an empty stream", driver().cuStreamQuery(stream), CUDA_SUCCESS);
  scene.hold(stream);
  test.expect_code("cuEventRecord", driver().cuEventRecord(event, stream), CUDA_SUCCESS);
  test.expect_code("a busy stream", driver().cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  test.expect_code("an event behind work", driver().cuEventQuery(event), CUDA_ERROR_NOT_READY);
  scene.release();
  test.expect_code("cuEventSynchronize", driver().cuEventSynchronize(event), CUDA_SUCCESS);
  test.expect_code("an event that has passed", driver().cuEventQuery(event), CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.expect_code("a stream that is done", driver().cuStreamQuery(stream), CUDA_SUCCESS);
}

void streams_wait_for_events(Test& test) {
  Scene scene(test);
  const CUstream first = scene.stream(CU_STREAM_NON_BLOCKING), second = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = scene.event(CU_EVENT_DISABLE_TIMING);
  const auto word = test.zeros<unsigned>(1);
  scene.hold(first);
  scene.launch("add_to", first, word, 5u);
  test.expect_code("cuEventRecord", driver().cuEventRecord(event, first), CUDA_SUCCESS);
  test.expect_code("cuStreamWaitEvent", driver().cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
  scene.launch("add_to", second, word, 7u);
  test.expect_code("the second waits", driver().cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  scene.release();
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(second), CUDA_SUCCESS);
  test.equal("5 before 7", test.download(word), {22u});
}

void default_stream(Test& test) {
  Scene scene(test);
  const CUstream blocking = scene.stream(CU_STREAM_DEFAULT), independent = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto word = test.zeros<unsigned>(1), other = test.zeros<unsigned>(1);
  scene.hold(blocking);
  scene.launch("add_to", nullptr, word, 3u);
  scene.launch("add_to", independent, other, 4u);
  test.expect_code("a non-blocking stream goes on", driver().cuStreamSynchronize(independent), CUDA_SUCCESS);
  test.expect_code("the legacy stream waits for blocking ones", driver().cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  scene.launch("add_to", blocking, word, 1u);
  scene.release();
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(blocking), CUDA_SUCCESS);
  test.equal("3 before 1", test.download(word), {10u});
}

void timing(Test& test) {
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent a = scene.event(), b = scene.event(), c = scene.event(), never = scene.event();
  const CUevent untimed = scene.event(CU_EVENT_DISABLE_TIMING);
  const auto word = test.zeros<unsigned>(1);
  driver().cuEventRecord(a, stream);
  for (unsigned i = 0; i < 10; ++i) scene.launch("add_to", stream, word, i);
  driver().cuEventRecord(b, stream);
  for (unsigned i = 0; i < 10; ++i) scene.launch("add_to", stream, word, i);
  driver().cuEventRecord(c, stream);
  driver().cuEventRecord(untimed, stream);
  test.expect_code("cuEventSynchronize", driver().cuEventSynchronize(untimed), CUDA_SUCCESS);
  float ab = -1, bc = -1, ac = -1;
  test.expect_code("cuEventElapsedTime", driver().cuEventElapsedTime(&ab, a, b), CUDA_SUCCESS);
  driver().cuEventElapsedTime(&bc, b, c);
  driver().cuEventElapsedTime(&ac, a, c);
  test.expect(ab >= 0 && bc >= 0 && ac >= ab && ac >= bc, "time does not run backwards");
  test.expect(std::fabs(ab + bc - ac) < 0.01f, "the parts make the whole");
  test.expect_code("an event without timing", driver().cuEventElapsedTime(&ab, a, untimed), CUDA_ERROR_INVALID_HANDLE);
  test.expect_code("an event never recorded", driver().cuEventElapsedTime(&ab, a, never), CUDA_ERROR_INVALID_HANDLE);
  scene.hold(stream);
  driver().cuEventRecord(c, stream);
  test.expect_code("an event still to come", driver().cuEventElapsedTime(&ab, a, c), CUDA_ERROR_NOT_READY);
}

struct Visit {
  std::atomic<int> calls{0};
  unsigned* word = nullptr;
  unsigned seen = 0;
};

void visit_word(void* data) {
  auto& visit = *static_cast<Visit*>(data);
  visit.seen = *visit.word;
  ++visit.calls;
}

void host_functions(Test& test) {
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto word = test.zeros<unsigned>(1);
  unsigned copied = 0;
  Visit visit;
  visit.word = &copied;
  scene.launch("add_to", stream, word, 9u);
  test.expect_code("copy", driver().cuMemcpyDtoHAsync(&copied, word.address, 4, stream), CUDA_SUCCESS);
  test.expect_code("cuLaunchHostFunc", driver().cuLaunchHostFunc(stream, visit_word, &visit), CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.expect_value("calls", visit.calls, 1);
  test.expect_value("it sees what was copied before it", visit.seen, 9);
}

void properties(Test& test) {
  int least = 0, greatest = 0, priority = 0;
  unsigned flags = 77;
  CUstream stream = nullptr;
  test.expect_code("priorities", driver().cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
  test.expect(least >= greatest, "lower numbers are greater priorities");
  test.expect_code("beyond the range",
                   driver().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 100), CUDA_SUCCESS);
  test.expect_code("cuStreamGetPriority", driver().cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
  test.expect(priority == greatest, "it is clamped");
  test.expect_code("cuStreamGetFlags", driver().cuStreamGetFlags(stream, &flags), CUDA_SUCCESS);
  test.expect_value("flags", flags, CU_STREAM_NON_BLOCKING);
  test.expect_code("cuStreamDestroy", driver().cuStreamDestroy(stream), CUDA_SUCCESS);
  CUevent event = nullptr;
  test.expect_code("a stream with unknown flags", driver().cuStreamCreate(&stream, 0x80), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("an event with unknown flags", driver().cuEventCreate(&event, 0x80), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("an interprocess event with timing", driver().cuEventCreate(&event, CU_EVENT_INTERPROCESS),
                   CUDA_ERROR_INVALID_VALUE);
}

constexpr Case kCases[] = {
    {"one_stream_is_ordered", "driver", one_stream_is_ordered},
    {"queries", "driver", queries},
    {"streams_wait_for_events", "driver", streams_wait_for_events},
    {"default_stream", "driver", default_stream},
    {"timing", "driver", timing},
    {"host_functions", "driver", host_functions},
    {"properties", nullptr, properties},
};

}  // namespace

const Field kStreams{"streams", kCases};

}  // namespace softgpu::conformance
