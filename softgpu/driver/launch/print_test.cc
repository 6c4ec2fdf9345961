// What kernels print, and how much of it is kept.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::make_stream;
using softgpu::testing::use_device;

// Prints the numbers from 1 to `last`, a line each.
const char kCountPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64

.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 format[4] = {37, 100, 10, 0};

.visible .entry count_to(.param .u32 last) {
  .local .align 8 .b8 arguments[8];
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<5>;
  ld.param.u32 %r1, [last];
  mov.u32 %r2, 0;
  mov.u64 %rd1, arguments;
  cvta.local.u64 %rd2, %rd1;
  mov.u64 %rd3, format;
  cvta.global.u64 %rd4, %rd3;
LOOP:
  add.u32 %r2, %r2, 1;
  st.local.u32 [%rd1], %r2;
  {
  .param .b64 p0;
  .param .b64 p1;
  .param .b32 ret;
  st.param.b64 [p0], %rd4;
  st.param.b64 [p1], %rd2;
  call.uni (ret), vprintf, (p0, p1);
  ld.param.b32 %r3, [ret];
  }
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra LOOP;
  ret;
}
)";

// Standard output of this process, in a file.
class Output {
 public:
  Output() : path_(std::string(std::getenv("SOFTGPU_HOME")) + "/output") {
    const int file = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    EXPECT_EQ(::dup2(file, STDOUT_FILENO), STDOUT_FILENO);
    ::close(file);
  }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }

 private:
  const std::string path_;
};

CUresult count_to(unsigned last, CUstream stream = nullptr) {
  static CUfunction function = nullptr;
  if (function == nullptr) {
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, kCountPtx), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "count_to"), CUDA_SUCCESS);
  }
  void* parameters[] = {&last};
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

DRIVER_TEST(Print, KeepsTheLatestLinesThatFitTheLimit) {
  use_device();
  const Output output;
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 14), CUDA_SUCCESS);
  EXPECT_EQ(count_to(1000), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(output.text(), "998\n999\n1000\n");  // 13 bytes; "997\n" would make 17
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096), CUDA_SUCCESS);
  EXPECT_EQ(count_to(3), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(output.text(), "998\n999\n1000\n1\n2\n3\n");
}

DRIVER_TEST(Print, ALaunchWritesWhatEarlierKernelsPrinted) {
  use_device();
  const Output output;
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(count_to(2, stream), CUDA_SUCCESS);
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  EXPECT_EQ(output.text(), "");
  EXPECT_EQ(count_to(1, stream), CUDA_SUCCESS);
  EXPECT_EQ(output.text(), "1\n2\n");
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(output.text(), "1\n2\n1\n");
}

}  // namespace
