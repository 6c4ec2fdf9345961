// Kernels and shortcuts that tests and benchmarks share.
#include <map>
#include <thread>

#include "softgpu/driver/driver_testing.h"

namespace softgpu::testing {

CUcontext use_device() {
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  return context;
}

CUmodule test_module() {
  static auto& modules = *new std::map<CUcontext, CUmodule>;  // scenarios use it while they exit, too
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  CUmodule& module = modules[context];
  if (module == nullptr) {
    EXPECT_EQ(cuModuleLoadData(&module, kTestPtx), CUDA_SUCCESS);
  }
  return module;
}

CUfunction test_function(const char* name) {
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, test_module(), name), CUDA_SUCCESS) << name;
  return function;
}

CUresult run_kernel(const char* name, void** parameters, CUstream stream, unsigned grid, unsigned block) {
  return cuLaunchKernel(test_function(name), grid, 1, 1, block, 1, 1, 0, stream, parameters, nullptr);
}

CUstream make_stream(unsigned flags) {
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
  return stream;
}

CUdeviceptr make_words(std::size_t count) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, 4 * count), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32_v2(address, 0, count), CUDA_SUCCESS);
  return address;
}

unsigned word_at(CUdeviceptr address) {
  unsigned word = 0;
  EXPECT_EQ(cuMemcpyDtoH_v2(&word, address, sizeof word), CUDA_SUCCESS);
  return word;
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  return free;
}

CUresult add_one(CUdeviceptr word) {
  void* parameters[] = {&word};
  const CUresult launched = run_kernel("add_one", parameters);
  return launched != CUDA_SUCCESS ? launched : cuCtxSynchronize();
}

CUresult store_index(CUdeviceptr words, unsigned count, CUstream stream) {
  void* parameters[] = {&words, &count};
  return run_kernel("store_index", parameters, stream, (count + 127) / 128, 128);
}

Gate::Gate() {
  void* memory = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&memory, 2 * sizeof(unsigned), 0), CUDA_SUCCESS);
  word = static_cast<std::atomic<unsigned>*>(memory);
  address = reinterpret_cast<CUdeviceptr>(memory);
}

CUresult Gate::close(CUstream stream) {
  void* parameters[] = {&address};
  return run_kernel("wait_flag", parameters, stream);
}

void Gate::wait_until_closed() const {
  while (word[1].load() == 0) std::this_thread::yield();
}

const char kTestPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 table[16];

.visible .entry empty() {
  ret;
}

.visible .entry store_index(.param .u64 words, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [words];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r5;
DONE:
  ret;
}

.visible .entry add_one(.param .u64 word) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [word];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r1, [%rd2];
  add.s32 %r2, %r1, 1;
  st.global.u32 [%rd2], %r2;
  ret;
}

.visible .entry wait_flag(.param .u64 flag) {
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [flag];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 1;
  st.volatile.global.u32 [%rd2+4], %r1;
LOOP:
  ld.volatile.global.u32 %r1, [%rd2];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra LOOP;
  ret;
}

.visible .entry misaligned(.param .u64 word) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [word];
  cvta.to.global.u64 %rd2, %rd1;
  add.s64 %rd3, %rd2, 1;
  mov.u32 %r1, 7;
  st.global.u32 [%rd3], %r1;
  ret;
}

.visible .entry trapping() {
  trap;
  ret;
}
)";

}  // namespace softgpu::testing
