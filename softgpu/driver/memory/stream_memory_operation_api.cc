// cuStreamWaitValue*, cuStreamWriteValue*, cuStreamBatchMemOp.
#include <chrono>
#include <thread>

#include "softgpu/device/memory/memory_use.h"
#include "softgpu/driver/memory/memory.h"
#include "softgpu/driver/memory/stream_memory_operation.h"
#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/stream_handle.h"

using softgpu::StreamUse;

namespace {

using Operations = std::vector<CUstreamBatchMemOpParams>;

constexpr unsigned kMaxOperations = 256;
constexpr unsigned kConditions = CU_STREAM_WAIT_VALUE_NOR;  // two bits
// A stream that waits asks this often, once it has asked kEagerChecks times at full speed.
constexpr std::chrono::microseconds kPollInterval(20);
constexpr int kEagerChecks = 1000;

bool is_wide(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

CUresult check_word(const CUstreamMemOpValueParams& operation) {
  const std::uint64_t bytes = is_wide(operation.operation) ? 8 : 4;
  softgpu::Place place;
  if (operation.address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::locate(operation.address, bytes, place));
  return place.pageable() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult check_operation(const CUstreamBatchMemOpParams& operation) {
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      if ((operation.waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
      if ((operation.waitValue.flags & ~kConditions) != 0) return CUDA_ERROR_INVALID_VALUE;
      return check_word(operation.waitValue);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      if (operation.writeValue.flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return CUDA_ERROR_INVALID_VALUE;
      return check_word(operation.writeValue);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
    case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

template <typename Word>
bool holds(Word now, Word wanted, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_EQ: return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (now & wanted) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return static_cast<Word>(~(now | wanted)) != 0;
    default: return static_cast<std::make_signed_t<Word>>(now - wanted) >= 0;  // cyclic
  }
}

// Looks at the operation's word. The program may have freed or unmapped it since it was checked: then the context gets
// a fault.
template <typename Look>
void at_word(CUcontext context, const CUstreamMemOpValueParams& operation, Look look) {
  const softgpu::MemoryUse use;
  if (check_word(operation) == CUDA_SUCCESS) return look();
  context->set_fault(CUDA_ERROR_ILLEGAL_ADDRESS, "the word of a stream's memory operation was freed or unmapped");
}

template <typename Word>
void wait_for(CUcontext context, const CUstreamMemOpValueParams& operation, Word wanted) {
  const auto* word = reinterpret_cast<const Word*>(operation.address);
  bool done = false;
  for (int checks = 0; !context->must_stop();) {
    at_word(context, operation,
            [&] { done = holds(__atomic_load_n(word, __ATOMIC_ACQUIRE), wanted, operation.flags); });
    if (done) return;
    if (checks < kEagerChecks) {
      ++checks;
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPollInterval);
    }
  }
}

template <typename Word>
void write(CUcontext context, const CUstreamMemOpValueParams& operation, Word value) {
  auto* word = reinterpret_cast<Word*>(operation.address);
  at_word(context, operation, [&] { __atomic_store_n(word, value, __ATOMIC_RELEASE); });
}

void run_operation(CUcontext context, const CUstreamBatchMemOpParams& operation) {
  const CUstreamMemOpValueParams& value = operation.waitValue;
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32: return wait_for(context, value, value.value);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return wait_for(context, value, value.value64);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return write(context, value, value.value);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return write(context, value, value.value64);
    default: return std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

CUresult submit(CUstream stream, Operations operations, unsigned flags) {
  StreamUse use;
  std::function<void()> run;
  SOFTGPU_TRY(softgpu::capturable_stream(stream, use));
  SOFTGPU_TRY(softgpu::prepare_memory_operations(use.context, operations, flags, run));
  if (use.capturing) {
    return softgpu::recorder_of(use).memory_operations(use, std::move(operations), flags);
  }
  use.context->streams().submit(*use.stream, std::move(run));
  return CUDA_SUCCESS;
}

CUresult submit_one(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, std::uint64_t value,
                    unsigned flags) {
  CUstreamBatchMemOpParams operation = {};
  operation.waitValue.operation = type;
  operation.waitValue.address = address;
  operation.waitValue.value64 = value;
  operation.waitValue.flags = flags;
  return submit(stream, {operation}, 0);
}

}  // namespace

namespace softgpu {

CUresult prepare_memory_operations(CUcontext context, const Operations& operations, unsigned flags,
                                   std::function<void()>& run) {
  if (flags != 0 || operations.empty() || operations.size() > kMaxOperations) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& operation : operations) SOFTGPU_TRY(check_operation(operation));
  run = [context, operations] {
    for (const auto& operation : operations) {
      if (context->fault() == CUDA_SUCCESS) run_operation(context, operation);
    }
  };
  return CUDA_SUCCESS;
}

}  // namespace softgpu

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return submit_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return submit_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return submit_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return submit_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  if (operations == nullptr || count == 0 || count > kMaxOperations) return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, Operations(operations, operations + count), flags);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return cuStreamWaitValue32_v2(stream, address, value, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return cuStreamWaitValue64_v2(stream, address, value, flags);
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return cuStreamWriteValue32_v2(stream, address, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return cuStreamWriteValue64_v2(stream, address, value, flags);
}
CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}
