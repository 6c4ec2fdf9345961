// Loading code through the driver: fat binaries, architectures, damaged images, options, linking.
#include <sys/mman.h>

#include <cstring>
#include <fstream>

#include "softgpu/driver/code/fatbin.h"
#include "softgpu/driver/code/fatbin_wrapper.h"
#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::Compression;
using softgpu::FatbinWrapper;
using softgpu::PtxForArchitecture;
using softgpu::testing::Environment;
using softgpu::testing::kTestPtx;
using softgpu::testing::use_device;

// A kernel that stores `value`, so that a test sees which text was chosen.
std::string storing(int value, const std::string& target, const std::string& version = "7.0") {
  return ".version " + version + "\n.target " + target +
         "\n.address_size 64\n.visible .entry store(.param .u64 p) {\n"
         ".reg .b64 %d<3>;\n.reg .b32 %r;\nld.param.u64 %d1, [p];\ncvta.to.global.u64 %d2, %d1;\nmov.u32 %r, " +
         std::to_string(value) + ";\nst.global.u32 [%d2], %r;\nret;\n}\n";
}

// What the module's kernel `store` stores.
int stored(CUmodule module) {
  CUfunction function = nullptr;
  CUdeviceptr word = 0;
  int value = -1;
  EXPECT_EQ(cuModuleGetFunction(&function, module, "store"), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&word, 4), CUDA_SUCCESS);
  void* parameters[] = {&word};
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(&value, word, 4), CUDA_SUCCESS);
  cuMemFree_v2(word);
  return value;
}

int stored_by(const void* image) {
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, image), CUDA_SUCCESS);
  const int value = stored(module);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  return value;
}

CUresult load(const void* image) {
  CUmodule module = nullptr;
  return cuModuleLoadData(&module, image);
}

DRIVER_TEST(Fatbin, LoadsInEveryFormAndCompression) {
  use_device();
  const std::string text = storing(5, "sm_70");
  const PtxForArchitecture entries[] = {{70, text}};
  for (const Compression compression : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    const auto container = softgpu::write_fatbin(entries, compression);
    EXPECT_EQ(stored_by(container.data()), 5);
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadFatBinary(&module, container.data()), CUDA_SUCCESS);
    EXPECT_EQ(stored(module), 5);
    const std::string path = std::string(std::getenv("SOFTGPU_HOME")) + ".fatbin";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(container.data()), static_cast<std::streamsize>(container.size()));
    EXPECT_EQ(cuModuleLoad(&module, path.c_str()), CUDA_SUCCESS);
    EXPECT_EQ(stored(module), 5);
    ::unlink(path.c_str());
  }
}

CUresult load_library(const void* image) {
  CUlibrary library = nullptr;
  const CUresult result = cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result == CUDA_SUCCESS) {
    EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  }
  return result;
}

// As hardware has it: modules come from containers, whatever the name of the call.
DRIVER_TEST(Fatbin, AWrapperIsOfUseToLibrariesOnly) {
  use_device();
  const std::string text = storing(5, "sm_70");
  const PtxForArchitecture entries[] = {{70, text}};
  const auto container = softgpu::write_fatbin(entries, Compression::kNone);
  const FatbinWrapper wrapper{.data = container.data()};
  CUmodule module = nullptr;
  EXPECT_EQ(load(&wrapper), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoadFatBinary(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(load_library(&wrapper), CUDA_SUCCESS);
  EXPECT_EQ(load_library(container.data()), CUDA_SUCCESS);
  const FatbinWrapper empty{};
  EXPECT_EQ(load_library(&empty), CUDA_ERROR_INVALID_IMAGE);
  const FatbinWrapper astray{.data = "something else"};
  EXPECT_EQ(load_library(&astray), CUDA_ERROR_INVALID_IMAGE);
  const FatbinWrapper nested{.data = &wrapper};
  EXPECT_EQ(load_library(&nested), CUDA_ERROR_INVALID_IMAGE);
}

DRIVER_TEST_IN(Fatbin, TheNewestArchitectureThatRunsIsTaken, (Environment{{"SOFTGPU_PROFILE", "a100-40"}})) {
  use_device();
  const std::string volta = storing(70, "sm_70");
  const std::string turing = storing(75, "sm_75");
  const std::string hopper = storing(90, "sm_90");
  const std::string exact = storing(800, "sm_80a");
  const PtxForArchitecture entries[] = {{75, turing}, {70, volta}, {90, hopper}};
  EXPECT_EQ(stored_by(softgpu::write_fatbin(entries, Compression::kLz4).data()), 75);
  const PtxForArchitecture with_exact[] = {{80, exact}, {70, volta}};
  EXPECT_EQ(stored_by(softgpu::write_fatbin(with_exact, Compression::kZstd).data()), 800);
  EXPECT_EQ(load(softgpu::write_fatbin(std::span(entries).last(1), Compression::kNone).data()),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
}

DRIVER_TEST(Fatbin, MachineCodeAloneIsNoBinaryForThisDevice) {
  use_device();
  const PtxForArchitecture entries[] = {{70, "not text"}};
  auto container = softgpu::write_fatbin(entries, Compression::kNone);
  container[softgpu::kFatbinHeaderBytes] = std::byte{2};
  EXPECT_EQ(load(container.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(load(softgpu::write_fatbin({}, Compression::kNone).data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

// A container at the very end of mapped memory, with `cut` bytes missing: a read past it would be a crash.
class AtTheEdge {
 public:
  AtTheEdge(const std::vector<std::byte>& bytes, std::size_t cut) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    size_ = (bytes.size() + page - 1) / page * page;
    base_ = static_cast<std::byte*>(::mmap(nullptr, size_ + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(base_ + size_, page);
    ::mprotect(base_, size_, PROT_READ | PROT_WRITE);
    image_ = base_ + size_ - (bytes.size() - cut);
    std::memcpy(image_, bytes.data(), bytes.size() - cut);
  }
  ~AtTheEdge() { ::munmap(base_, size_); }
  AtTheEdge(const AtTheEdge&) = delete;
  AtTheEdge& operator=(const AtTheEdge&) = delete;
  const void* image() const { return image_; }

 private:
  std::byte* base_ = nullptr;
  std::byte* image_ = nullptr;
  std::size_t size_ = 0;
};

DRIVER_TEST(Fatbin, ACutOffContainerIsInvalidAndNothingPastItIsRead) {
  use_device();
  const std::string text = storing(1, "sm_70") + std::string(8000, '\n');
  const PtxForArchitecture entries[] = {{70, text}};
  const auto container = softgpu::write_fatbin(entries, Compression::kNone);
  EXPECT_EQ(load(AtTheEdge(container, 0).image()), CUDA_SUCCESS);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{4000}, container.size() - 16, container.size() - 8}) {
    EXPECT_EQ(load(AtTheEdge(container, cut).image()), CUDA_ERROR_INVALID_IMAGE) << cut;
  }
}

DRIVER_TEST(Image, NewerArchitecturesAndLanguagesAreRefused) {
  use_device();
  EXPECT_EQ(load(storing(1, "sm_75").c_str()), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load(storing(1, "sm_70", "9.0").c_str()), CUDA_SUCCESS);
  EXPECT_EQ(load(storing(1, "sm_70", "9.1").c_str()), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  char log[200] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadDataEx(&module, storing(1, "sm_75").c_str(), 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(log).find("newer than sm_70"), std::string::npos) << log;
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), std::strlen(log) + 1);
}

DRIVER_TEST(Jit, OptionsAreReadAndAnswered) {
  use_device();
  char log[64] = "x";
  float milliseconds = -1;
  CUjit_option options[] = {CU_JIT_MAX_REGISTERS, CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER,
                            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
  void* values[] = {reinterpret_cast<void*>(2), nullptr, log, reinterpret_cast<void*>(sizeof log),
                    reinterpret_cast<void*>(1)};
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  int registers = 0;
  ASSERT_EQ(cuModuleLoadDataEx(&module, kTestPtx, 5, options, values), CUDA_SUCCESS);
  std::memcpy(&milliseconds, &values[1], sizeof milliseconds);
  EXPECT_GT(milliseconds, 0.0F);
  EXPECT_LT(milliseconds, 10'000.0F);
  EXPECT_EQ(std::strncmp(log, "info    : 'add_one' uses ", 25), 0) << log;
  EXPECT_EQ(std::strlen(log), sizeof log - 1);  // cut to the buffer
  EXPECT_EQ(cuModuleGetFunction(&function, module, "store_index"), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function), CUDA_SUCCESS);
  EXPECT_EQ(registers, 2);
  options[0] = CU_JIT_NUM_OPTIONS;
  EXPECT_EQ(cuModuleLoadDataEx(&module, kTestPtx, 1, options, values), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuModuleLoadDataEx(&module, kTestPtx, 1, nullptr, values), CUDA_ERROR_INVALID_VALUE);
  options[0] = CU_JIT_TARGET;
  options[1] = CU_JIT_THREADS_PER_BLOCK;
  EXPECT_EQ(cuModuleLoadDataEx(&module, kTestPtx, 2, options, values), CUDA_ERROR_INVALID_VALUE);
}

const std::string kCaller = R"(.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 r) twice(.param .b32 x);
.extern .global .b32 base;
.visible .entry store(.param .u64 p) {
  .reg .b64 %d<4>;
  .reg .b32 %r<3>;
  ld.param.u64 %d1, [p];
  cvta.to.global.u64 %d2, %d1;
  ld.global.u32 %r1, [base];
  {
  .param .b32 x;
  .param .b32 r;
  st.param.b32 [x], %r1;
  call.uni (r), twice, (x);
  ld.param.b32 %r2, [r];
  }
  st.global.u32 [%d2], %r2;
  ret;
}
)";
const std::string kCallee = R"(.version 7.0
.target sm_70
.address_size 64
.visible .global .b32 base = 21;
.visible .func (.param .b32 r) twice(.param .b32 x) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.s32 %r2, %r1, %r1;
  st.param.b32 [r], %r2;
  ret;
}
)";

CUresult add_text(CUlinkState state, const std::string& text, const char* name) {
  return cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, name, 0, nullptr,
                          nullptr);
}

DRIVER_TEST(Link, TextsCallEachOtherAndTheResultLoads) {
  use_device();
  CUlinkState state = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(cuLinkCreate_v2(0, nullptr, nullptr, &state), CUDA_SUCCESS);
  EXPECT_EQ(add_text(state, kCaller, "caller"), CUDA_SUCCESS);
  const PtxForArchitecture entry[] = {{70, kCallee}};
  auto container = softgpu::write_fatbin(entry, Compression::kZstd);
  EXPECT_EQ(
      cuLinkAddData_v2(state, CU_JIT_INPUT_FATBINARY, container.data(), container.size(), nullptr, 0, nullptr, nullptr),
      CUDA_SUCCESS);
  ASSERT_EQ(cuLinkComplete(state, &image, &size), CUDA_SUCCESS);
  // As programs do: a copy of exactly `size` bytes, used after the linker is gone.
  const std::vector<char> copy(static_cast<char*>(image), static_cast<char*>(image) + size);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(stored_by(copy.data()), 42);
}

DRIVER_TEST(Link, WhatIsMissingIsNamedInTheLog) {
  use_device();
  CUlinkState state = nullptr;
  char log[200] = "";
  void* image = nullptr;
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  ASSERT_EQ(cuLinkCreate_v2(2, options, values, &state), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(add_text(state, kCaller, "caller.ptx"), CUDA_SUCCESS);
  values[1] = reinterpret_cast<void*>(sizeof log);
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(log).find("in 'caller.ptx'"), std::string::npos) << log;
  EXPECT_EQ(add_text(state, "no text", nullptr), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(add_text(state, storing(1, "sm_80"), nullptr), CUDA_ERROR_INVALID_PTX);
  char elf[] = "\177ELF";
  EXPECT_EQ(cuLinkAddData_v2(state, CU_JIT_INPUT_CUBIN, elf, 5, nullptr, 0, nullptr, nullptr),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY, elf, 5, nullptr, 0, nullptr, nullptr),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuLinkAddData_v2(state, CU_JIT_NUM_INPUT_TYPES, elf, 5, nullptr, 0, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, "/nonexistent.ptx", 0, nullptr, nullptr),
            CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
}

}  // namespace
