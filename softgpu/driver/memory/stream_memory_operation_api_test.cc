// Waits for words of memory, and writes of them, in a stream's order.
#include <atomic>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::make_stream;
using softgpu::testing::make_words;
using softgpu::testing::use_device;

DRIVER_TEST(MemoryOperation, WaitsHoldAStreamUntilTheWordFits) {
  use_device();
  const CUdeviceptr words = make_words(4);
  CUstream waiting = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream writing = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuStreamWaitValue32_v2(waiting, words, 5, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitValue64_v2(waiting, words + 8, 8, CU_STREAM_WAIT_VALUE_AND), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamWriteValue32_v2(writing, words, 4, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(writing), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamWriteValue32_v2(writing, words, 6, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWriteValue64_v2(writing, words + 8, 12, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(waiting), CUDA_SUCCESS);
}

DRIVER_TEST(MemoryOperation, ConditionsAreTheDocumentedOnes) {
  use_device();
  const CUdeviceptr word = make_words(1);
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuStreamWriteValue32_v2(stream, word, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitValue32_v2(stream, word, 0xFFFFFFFF, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);  // cyclic
  EXPECT_EQ(cuStreamWaitValue32_v2(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitValue32_v2(stream, word, 0, CU_STREAM_WAIT_VALUE_NOR), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

DRIVER_TEST(MemoryOperation, ABatchRunsInOrder) {
  use_device();
  const CUdeviceptr word = make_words(1);
  CUstreamBatchMemOpParams batch[3] = {};
  batch[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, word, {3}, 0, 0};
  batch[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
  batch[2].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, word, {3}, CU_STREAM_WAIT_VALUE_EQ, 0};
  EXPECT_EQ(cuStreamBatchMemOp_v2(nullptr, 3, batch, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamBatchMemOp_v2(nullptr, 3, batch, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamBatchMemOp_v2(nullptr, 257, batch, 0), CUDA_ERROR_INVALID_VALUE);
  batch[1].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  EXPECT_EQ(cuStreamBatchMemOp_v2(nullptr, 3, batch, 0), CUDA_ERROR_NOT_SUPPORTED);
  batch[1].operation = static_cast<CUstreamBatchMemOpType>(9);
  EXPECT_EQ(cuStreamBatchMemOp_v2(nullptr, 3, batch, 0), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(MemoryOperation, WrongAddressesAndFlagsAreRefused) {
  use_device();
  const CUdeviceptr word = make_words(1);
  std::atomic<unsigned> host{0};
  const auto pageable = reinterpret_cast<CUdeviceptr>(&host);
  EXPECT_EQ(cuStreamWriteValue32_v2(nullptr, word + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWriteValue64_v2(nullptr, word, 0, 0), CUDA_ERROR_INVALID_VALUE);  // leaves the allocation
  EXPECT_EQ(cuStreamWriteValue32_v2(nullptr, pageable, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWriteValue32_v2(nullptr, word, 0, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue32_v2(nullptr, word, 0, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue32_v2(nullptr, word, 0, CU_STREAM_WAIT_VALUE_FLUSH), CUDA_ERROR_NOT_SUPPORTED);
}

DRIVER_TEST(MemoryOperation, AWaitEndsWithItsContext) {
  use_device();
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitValue32_v2(nullptr, make_words(1), 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
}

}  // namespace
