// Products of matrices on the software GPU, by a cuBLAS of the tests and by the built-in library's kernels: of whole numbers,
// so that both are exact.
#include "runtime/device_server/cublas.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <complex>
#include <cstring>
#include <fstream>

#include "base/check.h"
#include "runtime/device_server/kernel_session.h"
#include "runtime/device_server/testing/gemm_generator.h"
#include "runtime/device_server/testing/gemm_task.h"
#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kRange = 64 << 20;

struct Gpu {
  Gpu() {
    std::ifstream file(GEMM_PTX);
    module = cuda->load_module(std::string(std::istreambuf_iterator<char>(file), {})).value();
    lane = LaunchLane::create(*cuda).value();
    base = cuda->reserve_addresses(Bytes(kRange), Bytes(kRange)).value();
    FL_CHECK(cuda->map_memory(base, Bytes(kRange)).has_value());
    void* library = dlopen(FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
    products = reinterpret_cast<unsigned (*)()>(dlsym(library, "fake_cublas_products"));
    refuse = reinterpret_cast<void (*)(cublasStatus_t)>(dlsym(library, "fake_cublas_refuse"));
  }

  std::unique_ptr<KernelSession> session(const KernelTask& task, Cublas* with) {
    auto session = KernelSession::create(*cuda, task, {module}, Launching::kGraphs, with);
    FL_CHECK(session.has_value(), "{}", session.error().message);
    FL_CHECK(lane->need_events(*cuda, (*session)->plan().events).has_value());
    return *std::move(session);
  }

  // All buffers after a call that began with these contents, temporaries aside; "": it failed.
  std::string run(KernelSession& session, const std::vector<std::string>& contents) {
    std::vector<CUdeviceptr> addresses;
    CUdeviceptr end = base;
    for (const BufferSpec& buffer : session.task().buffers) {
      addresses.push_back(end);
      end += (static_cast<std::uint64_t>(buffer.bytes.count()) + 511) / 512 * 512;
    }
    FL_CHECK(end - base <= kRange);
    for (std::size_t b = 0; b < contents.size(); ++b) {
      FL_CHECK(cuda->copy_in(addresses[b], contents[b].data(), contents[b].size(), lane->main()) == CUDA_SUCCESS);
    }
    const CUresult code = session.launch(*cuda, *lane, addresses);
    std::string after;
    for (std::size_t b = 0; b < contents.size() && code == CUDA_SUCCESS; ++b) {
      std::string bytes(contents[b].size(), '\0');
      FL_CHECK(cuda->copy_out(bytes.data(), addresses[b], bytes.size(), lane->main()) == CUDA_SUCCESS);
      FL_CHECK(cuda->synchronize().has_value());
      after += bytes;
    }
    FL_CHECK(cuda->synchronize().has_value());
    return after;
  }

  CudaContext* cuda = &software_gpu(SOFTGPU_FOLDER);
  std::unique_ptr<Cublas> cublas = Cublas::open(FAKE_CUBLAS).value();
  CUmodule module = nullptr;
  std::unique_ptr<LaunchLane> lane;
  CUdeviceptr base = 0;
  unsigned (*products)() = nullptr;
  void (*refuse)(cublasStatus_t) = nullptr;
};

Gpu& gpu() {
  static Gpu shared;
  return shared;
}

// Small whole numbers, of either sign, everywhere: in gaps too.
template <typename T>
std::string whole_numbers(std::size_t bytes, std::size_t seed) {
  std::string content(bytes, '\0');
  for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    const T value = static_cast<T>(static_cast<int>((i / sizeof(T) * 7 + seed * 3 + i / 64) % 7) - 3);
    std::memcpy(content.data() + i, &value, sizeof value);
  }
  return content;
}

std::vector<std::string> contents_of(const GemmTask& gemm, const KernelTask& task) {
  std::vector<std::string> contents;
  for (const BufferSpec& buffer : task.buffers) {
    const auto bytes = static_cast<std::size_t>(buffer.bytes.count());
    const bool wide = gemm.element == GemmCall::Element::kF64;
    contents.push_back(wide ? whole_numbers<double>(bytes, contents.size())
                            : whole_numbers<float>(bytes, contents.size()));
  }
  return contents;
}

// By value: 0 and -0 are one number.
template <typename T>
bool same_numbers(const std::string& left, const std::string& right) {
  std::vector<T> a(left.size() / sizeof(T)), b(right.size() / sizeof(T));
  std::memcpy(a.data(), left.data(), a.size() * sizeof(T));
  std::memcpy(b.data(), right.data(), b.size() * sizeof(T));
  return !left.empty() && a == b;
}

bool same(const GemmTask& gemm, const std::string& left, const std::string& right) {
  return gemm.element == GemmCall::Element::kF64 ? same_numbers<double>(left, right) : same_numbers<float>(left, right);
}

RC_GTEST_PROP(Cublas, ComputesWhatTheBuiltInKernelDoes, ()) {
  const GemmTask gemm = random_gemm(40);
  const KernelTask task = gemm.task();
  const auto own = gpu().session(task, nullptr);
  const auto with = gpu().session(task, gpu().cublas.get());
  RC_TAG(with->cublas_calls() == 1 ? "cuBLAS" : "own kernel");
  const auto contents = contents_of(gemm, task);
  const unsigned before = gpu().products();
  for (int call = 0; call < 2; ++call) {
    RC_ASSERT(same(gemm, gpu().run(*with, contents), gpu().run(*own, contents)));
  }
  RC_ASSERT(gpu().products() == before + 2 * with->cublas_calls());
}

TEST(CublasSession, HasNoGraphAndAWorkspaceForEachStream) {
  GemmTask gemm;
  KernelTask task = gemm.task();
  task.kernels.assign(9, task.kernels[0]);
  EXPECT_TRUE(gpu().session(task, nullptr)->has_graph());
  const auto chained = gpu().session(task, gpu().cublas.get());  // all write C, one after the other
  EXPECT_FALSE(chained->has_graph());
  EXPECT_EQ(chained->cublas_calls(), 9u);
  EXPECT_EQ(chained->temporary_bytes(), Bytes(Cublas::kWorkspaceBytes));

  KernelTask two = gemm.task();
  two.kernels.push_back(two.kernels[0]);
  two.kernels[1].arguments[GemmCall::kC] = BufferArgument{.buffer = GemmTask::kBufferD};
  for (KernelLaunch& launch : two.kernels) {
    for (const auto factor : {GemmCall::kA, GemmCall::kB})
      std::get<BufferArgument>(launch.arguments[factor]).access = BufferArgument::Access::kRead;
  }
  EXPECT_EQ(gpu().session(two, gpu().cublas.get())->temporary_bytes(), Bytes(2 * Cublas::kWorkspaceBytes));
}

struct Refused {
  cublasStatus_t status;
  GemmTask::Addend addend;
  bool fails;
};
class Refusals : public testing::TestWithParam<Refused> {
 protected:
  void TearDown() override { gpu().refuse(CUBLAS_STATUS_SUCCESS); }
};

// An addend in place may be half overwritten when cuBLAS fails in the middle.
TEST_P(Refusals, AreDoneByTheBuiltInKernelWhereNothingIsLost) {
  const GemmTask gemm{.beta = 2, .addend = GetParam().addend};
  const KernelTask task = gemm.task();
  const auto contents = contents_of(gemm, task);
  const auto with = gpu().session(task, gpu().cublas.get());
  const std::string expected = gpu().run(*gpu().session(task, nullptr), contents);
  gpu().refuse(GetParam().status);
  const std::string after = gpu().run(*with, contents);
  EXPECT_EQ(after.empty(), GetParam().fails);
  EXPECT_TRUE(GetParam().fails || same(gemm, after, expected));
  gpu().refuse(CUBLAS_STATUS_SUCCESS);
  EXPECT_TRUE(same(gemm, gpu().run(*with, contents), expected));  // from now on
  EXPECT_EQ(with->cublas_calls(), 0u);
}
INSTANTIATE_TEST_SUITE_P(Statuses, Refusals,
                         testing::Values(Refused{CUBLAS_STATUS_NOT_SUPPORTED, GemmTask::Addend::kInPlace, false},
                                         Refused{CUBLAS_STATUS_EXECUTION_FAILED, GemmTask::Addend::kOther, false},
                                         Refused{CUBLAS_STATUS_EXECUTION_FAILED, GemmTask::Addend::kInPlace, true}));

TEST(Cublas, SaysWhichItIs) {
  EXPECT_EQ(gpu().cublas->description(), std::string("cuBLAS 12.3.4 (") + FAKE_CUBLAS + ")");
}

TEST(Cublas, AFileThatIsNoneIsNamedWithWhatToDo) {
  const std::string other = std::string(SOFTGPU_FOLDER) + "/libcuda.so.1";
  for (const std::string& file : {std::string("/no/such/libcublas.so.12"), other}) {
    for (const Error& error : {Cublas::open(file).error(), Cublas::check_library(file).error()}) {
      EXPECT_THAT(error.message, testing::HasSubstr(file));
      EXPECT_THAT(error.message, testing::HasSubstr("--cublas"));
    }
  }
  EXPECT_TRUE(Cublas::check_library(FAKE_CUBLAS).has_value());
}

}  // namespace
}  // namespace fairlead
