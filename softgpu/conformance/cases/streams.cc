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

// ---- Waits and writes of memory words in a stream

void wait_and_write(Test& test) {
  Scene scene(test);
  const CUstream first = scene.stream(CU_STREAM_NON_BLOCKING), second = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto words = test.zeros<unsigned>(2), result = test.zeros<unsigned>(1);
  const CUdeviceptr flag = words.address;
  const CUresult waits = driver().cuStreamWaitValue32(first, flag, 7, CU_STREAM_WAIT_VALUE_EQ);
  if (waits == CUDA_ERROR_NOT_SUPPORTED) return test.skip("no stream memory operations");
  test.expect_code("cuStreamWaitValue32", waits, CUDA_SUCCESS);
  scene.launch("add_to", first, result, 5u);
  test.expect_code("6 is not 7", driver().cuStreamWriteValue32(second, flag, 6, CU_STREAM_WRITE_VALUE_DEFAULT),
                   CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(second), CUDA_SUCCESS);
  test.expect_code("it waits", driver().cuStreamQuery(first), CUDA_ERROR_NOT_READY);
  test.expect_code("7 is", driver().cuStreamWriteValue32(second, flag, 7, CU_STREAM_WRITE_VALUE_DEFAULT), CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(first), CUDA_SUCCESS);
  test.equal("it went on", test.download(result), {5u});
  test.equal("the word", test.download(words), {7u, 0u});
  test.expect_code("off its alignment", driver().cuStreamWriteValue32(second, flag + 2, 1, 0),
                   CUDA_ERROR_INVALID_VALUE);
}

// GEQ compares the difference as a signed number, so that a counter may wrap.
void wait_conditions(Test& test) {
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto words = test.upload(std::vector<unsigned>{3, 0xfffffff0, 0x10, 0});
  const CUdeviceptr at = words.address;
  const CUresult first = driver().cuStreamWaitValue32(stream, at, 3, CU_STREAM_WAIT_VALUE_GEQ);
  if (first == CUDA_ERROR_NOT_SUPPORTED) return test.skip("no stream memory operations");
  test.expect_code("3 >= 3", first, CUDA_SUCCESS);
  test.expect_code("3 >= 2^32 - 5, as signed", driver().cuStreamWaitValue32(stream, at, ~4u, CU_STREAM_WAIT_VALUE_GEQ),
                   CUDA_SUCCESS);
  test.expect_code("0x10 & 0x30", driver().cuStreamWaitValue32(stream, at + 8, 0x30, CU_STREAM_WAIT_VALUE_AND),
                   CUDA_SUCCESS);
  if (test.attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR) != 0) {
    test.expect_code("~(0xfffffff0 | 3)", driver().cuStreamWaitValue32(stream, at + 4, 3, CU_STREAM_WAIT_VALUE_NOR),
                     CUDA_SUCCESS);
  }
  if (test.attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0) {
    test.expect_code("cuStreamWriteValue64", driver().cuStreamWriteValue64(stream, at + 8, 0x500000001, 0),
                     CUDA_SUCCESS);
    test.expect_code("cuStreamWaitValue64",
                     driver().cuStreamWaitValue64(stream, at + 8, 0x500000001, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  }
  test.expect_code("all hold", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
}

void batch_of_operations(Test& test) {
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto words = test.zeros<unsigned>(3);
  CUstreamBatchMemOpParams operations[3] = {};
  for (unsigned i = 0; i < 2; ++i) {
    operations[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operations[i].writeValue.address = words.address + 4 * i;
    operations[i].writeValue.value = 10 + i;
  }
  operations[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[2].waitValue.address = words.address + 4;
  operations[2].waitValue.value = 11;
  operations[2].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  const CUresult result = driver().cuStreamBatchMemOp(stream, 3, operations, 0);
  if (result == CUDA_ERROR_NOT_SUPPORTED) return test.skip("no stream memory operations");
  test.expect_code("cuStreamBatchMemOp", result, CUDA_SUCCESS);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.equal("words", test.download(words), {10u, 11u, 0u});
}

// A wait captures what the event stands for at that moment; recording it again does not move the wait.
void recorded_again(Test& test) {
  Scene scene(test);
  const CUstream fast = scene.stream(CU_STREAM_NON_BLOCKING), held = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUstream waiting = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = scene.event(CU_EVENT_DISABLE_TIMING);
  const auto word = test.zeros<unsigned>(1);
  test.check(driver().cuEventRecord(event, fast), "cuEventRecord");
  test.check(driver().cuStreamWaitEvent(waiting, event, 0), "cuStreamWaitEvent");
  scene.hold(held);
  test.check(driver().cuEventRecord(event, held), "cuEventRecord");
  scene.launch("add_to", waiting, word, 4u);
  test.expect_code("the wait is over", driver().cuStreamSynchronize(waiting), CUDA_SUCCESS);
  test.expect_code("the event is not", driver().cuEventQuery(event), CUDA_ERROR_NOT_READY);
}

void handles(Test& test) {
  Scene scene(test);
  const CUstream a = scene.stream(CU_STREAM_NON_BLOCKING), b = scene.stream(CU_STREAM_NON_BLOCKING);
  CUcontext own = nullptr, current = nullptr;
  unsigned long long first = 0, second = 0;
  driver().cuCtxGetCurrent(&current);
  test.expect_code("cuStreamGetCtx", driver().cuStreamGetCtx(a, &own), CUDA_SUCCESS);
  test.expect(own == current, "a stream belongs to its context");
  test.expect_code("cuStreamGetId", driver().cuStreamGetId(a, &first), CUDA_SUCCESS);
  driver().cuStreamGetId(b, &second);
  test.expect(first != second, "identifiers differ");
  test.expect_code("the legacy stream", driver().cuStreamSynchronize(CU_STREAM_LEGACY), CUDA_SUCCESS);
  test.expect_code("the thread's own", driver().cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
}

constexpr Case kCases[] = {
    {"one_stream_is_ordered", "driver", one_stream_is_ordered},
    {"queries", "driver", queries},
    {"streams_wait_for_events", "driver", streams_wait_for_events},
    {"default_stream", "driver", default_stream},
    {"timing", "driver", timing},
    {"host_functions", "driver", host_functions},
    {"properties", nullptr, properties},
    {"wait_and_write", "driver", wait_and_write},
    {"wait_conditions", nullptr, wait_conditions},
    {"batch_of_operations", nullptr, batch_of_operations},
    {"recorded_again", "driver", recorded_again},
    {"handles", nullptr, handles},
};

}  // namespace

const Field kStreams{"streams", kCases};

}  // namespace softgpu::conformance
