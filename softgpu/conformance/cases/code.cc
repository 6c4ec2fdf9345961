// Code in containers: fat binaries, the linker, libraries. The documentation of cuModule*, cuLink*, cuLibrary*, cuKernel*;
// the layout of fat binaries is that of public compilers, which clang and LLVM write.
#include <algorithm>

#include "softgpu/conformance/fat_binary.h"
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

const std::string kHead = ".version 6.3\n.target sm_70\n.address_size 64\n";

// Adds 5 to a word.
const std::string kAddFive = kHead +
                             ".visible .global .align 4 .u32 bias = 5;\n"
                             ".visible .entry add_five(.param .u64 word)\n{\n"
                             ".reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n"
                             "ld.param.u64 %rd1, [word];\ncvta.to.global.u64 %rd1, %rd1;\n"
                             "ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [bias];\nadd.u32 %r1, %r1, %r2;\n"
                             "st.global.u32 [%rd1], %r1;\nret;\n}\n";

// *word = twice(*word), where twice is another input's.
const std::string kCaller = kHead +
                            ".extern .func (.param .b32 result) twice(.param .b32 value);\n"
                            ".visible .entry call_twice(.param .u64 word)\n{\n"
                            ".reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n"
                            "ld.param.u64 %rd1, [word];\ncvta.to.global.u64 %rd1, %rd1;\nld.global.u32 %r1, [%rd1];\n"
                            "{\n.param .b32 argument;\n.param .b32 answer;\nst.param.b32 [argument], %r1;\n"
                            "call.uni (answer), twice, (argument);\nld.param.b32 %r2, [answer];\n}\n"
                            "st.global.u32 [%rd1], %r2;\nret;\n}\n";
const std::string kTwice = kHead +
                           ".visible .func (.param .b32 result) twice(.param .b32 value)\n{\n.reg .b32 %r<3>;\n"
                           "ld.param.b32 %r1, [value];\nadd.u32 %r2, %r1, %r1;\nst.param.b32 [result], %r2;\nret;\n}\n";

// Runs a kernel that changes a word which is 37 before.
unsigned run_on_word(Test& test, CUfunction function) {
  const auto word = test.upload(std::vector<unsigned>{37});
  CUdeviceptr address = word.address;
  void* parameters[] = {&address};
  if (test.ok()) {
    test.check(driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
  }
  return test.download(word).front();
}

void expect_word(Test& test, CUmodule module, const char* kernel, unsigned want) {
  CUfunction function = nullptr;
  if (test.ok()) test.check(driver().cuModuleGetFunction(&function, module, kernel), "cuModuleGetFunction");
  if (test.ok()) test.expect_value(kernel, run_on_word(test, function), want);
}

void load_fat_binary(Test& test, FatBinary::Packing packing) {
  FatBinary fat;
  fat.add_ptx(70, kAddFive, packing);
  CUmodule module = nullptr;
  test.expect_code("cuModuleLoadData", driver().cuModuleLoadData(&module, fat.container()), CUDA_SUCCESS);
  expect_word(test, module, "add_five", 42);
  if (module != nullptr) driver().cuModuleUnload(module);
  module = nullptr;
  test.expect_code("cuModuleLoadFatBinary", driver().cuModuleLoadFatBinary(&module, fat.container()), CUDA_SUCCESS);
  expect_word(test, module, "add_five", 42);
  if (module != nullptr) driver().cuModuleUnload(module);
}

// A wrapper is the runtime's: it gives the driver the container.
void fat_binary_wrapper(Test& test) {
  FatBinary fat;
  fat.add_ptx(70, kAddFive, FatBinary::Packing::kPlain);
  const FatBinary::Wrapper wrapper = fat.wrapper();
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  test.expect_code("cuModuleLoadData", driver().cuModuleLoadData(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
  test.expect_code("cuModuleLoadFatBinary", driver().cuModuleLoadFatBinary(&module, &wrapper),
                   CUDA_ERROR_INVALID_IMAGE);
  test.observe("cuLibraryLoadData of a wrapper",
               name_of(driver().cuLibraryLoadData(&library, &wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0)));
  if (library != nullptr) driver().cuLibraryUnload(library);
}

void plain_fat_binary(Test& test) {
  load_fat_binary(test, FatBinary::Packing::kPlain);
}

void lz4_fat_binary(Test& test) {
  load_fat_binary(test, FatBinary::Packing::kLz4);
}

void zstd_fat_binary(Test& test) {
  int version = 0;
  driver().cuDriverGetVersion(&version);
  if (version < 12040) return test.skip("zstd came with CUDA 12.4");
  load_fat_binary(test, FatBinary::Packing::kZstd);
}

// Machine code of another architecture and PTX of a newer one are no use to this device.
void nothing_for_this_device(Test& test) {
  CUmodule module = nullptr;
  FatBinary empty, foreign, newer;
  foreign.add_machine_code(35, std::string(256, '\x7f'));
  std::string text = kAddFive;
  newer.add_ptx(999, text.replace(text.find("sm_70"), 5, "sm_999"), FatBinary::Packing::kPlain);
  test.expect_code("no entry", driver().cuModuleLoadData(&module, empty.container()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  test.expect_code("only foreign machine code", driver().cuModuleLoadData(&module, foreign.container()),
                   CUDA_ERROR_NO_BINARY_FOR_GPU);
  test.expect_code("only PTX of the future", driver().cuModuleLoadData(&module, newer.container()),
                   CUDA_ERROR_NO_BINARY_FOR_GPU);
}

class Link {
 public:
  explicit Link(Test& test) { test.check(driver().cuLinkCreate(0, nullptr, nullptr, &state_), "cuLinkCreate"); }
  ~Link() {
    if (state_ != nullptr) driver().cuLinkDestroy(state_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  CUresult add(std::string text, const char* name) {
    return driver().cuLinkAddData(state_, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, name, 0, nullptr, nullptr);
  }
  CUresult complete(void** image) {
    std::size_t bytes = 0;
    return driver().cuLinkComplete(state_, image, &bytes);
  }

 private:
  CUlinkState state_ = nullptr;
};

void linking(Test& test) {
  Link link(test);
  void* image = nullptr;
  CUmodule module = nullptr;
  test.expect_code("the caller", link.add(kCaller, "caller.ptx"), CUDA_SUCCESS);
  test.expect_code("what it calls", link.add(kTwice, "twice.ptx"), CUDA_SUCCESS);
  test.expect_code("cuLinkComplete", link.complete(&image), CUDA_SUCCESS);
  if (!test.ok()) return;
  test.expect_code("cuModuleLoadData", driver().cuModuleLoadData(&module, image), CUDA_SUCCESS);
  expect_word(test, module, "call_twice", 74);
  if (module != nullptr) driver().cuModuleUnload(module);
}

void linking_errors(Test& test) {
  void* image = nullptr;
  CUmodule module = nullptr;
  {
    Link link(test);
    test.expect_code("the caller alone", link.add(kCaller, "caller.ptx"), CUDA_SUCCESS);
    test.expect(link.complete(&image) != CUDA_SUCCESS, "an unresolved function is an error");
  }
  {
    Link link(test);
    test.expect_code("once", link.add(kTwice, "a.ptx"), CUDA_SUCCESS);
    const CUresult again = link.add(kTwice, "b.ptx");
    test.expect(again != CUDA_SUCCESS || link.complete(&image) != CUDA_SUCCESS, "a function twice is an error");
  }
  test.expect(driver().cuModuleLoadData(&module, kCaller.c_str()) != CUDA_SUCCESS,
              "a module with an unresolved function is refused");
}

void libraries(Test& test) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr bias = 0;
  std::size_t bytes = 0;
  test.expect_code("cuLibraryLoadData",
                   driver().cuLibraryLoadData(&library, kAddFive.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                   CUDA_SUCCESS);
  if (!test.ok()) return;
  test.expect_code("cuLibraryGetKernel", driver().cuLibraryGetKernel(&kernel, library, "add_five"), CUDA_SUCCESS);
  test.expect_code("cuKernelGetFunction", driver().cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  test.expect_value("through its function", run_on_word(test, function), 42);
  test.expect_code("cuLibraryGetGlobal", driver().cuLibraryGetGlobal(&bias, &bytes, library, "bias"), CUDA_SUCCESS);
  test.expect_value("bytes", static_cast<long long>(bytes), 4);
  test.check(driver().cuMemsetD32(bias, 9, 1), "cuMemsetD32");
  // A CUkernel may be cast to CUfunction for a launch.
  test.expect_value("through the kernel", run_on_word(test, reinterpret_cast<CUfunction>(kernel)), 46);
  test.expect_code("no such kernel", driver().cuLibraryGetKernel(&kernel, library, "nothing"), CUDA_ERROR_NOT_FOUND);
  test.expect_code("no such variable", driver().cuLibraryGetGlobal(&bias, &bytes, library, "nothing"),
                   CUDA_ERROR_NOT_FOUND);
  test.expect_code("cuLibraryUnload", driver().cuLibraryUnload(library), CUDA_SUCCESS);
}

void enumeration(Test& test) {
  int version = 0;
  driver().cuDriverGetVersion(&version);
  if (version < 12040) return test.skip("cuModuleEnumerateFunctions came with CUDA 12.4");
  CUmodule module = nullptr;
  const std::string second = kAddFive + ".visible .entry another() { ret; }\n";
  if (!test.check(driver().cuModuleLoadData(&module, second.c_str()), "cuModuleLoadData")) return;
  unsigned count = 0;
  CUfunction functions[2] = {};
  test.expect_code("cuModuleGetFunctionCount", driver().cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
  test.expect_value("functions", count, 2);
  test.expect_code("cuModuleEnumerateFunctions", driver().cuModuleEnumerateFunctions(functions, 2, module),
                   CUDA_SUCCESS);
  std::vector<std::string> names;
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    CUmodule owner = nullptr;
    test.check(driver().cuFuncGetName(&name, function), "cuFuncGetName");
    test.check(driver().cuFuncGetModule(&owner, function), "cuFuncGetModule");
    test.expect(owner == module, "the module of a function");
    if (test.ok()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  test.expect(names == std::vector<std::string>{"add_five", "another"}, "their names");
  driver().cuModuleUnload(module);
}

// Whatever a driver does when it is told to load lazily, what cuFuncLoad was called for is loaded.
void loading(Test& test) {
  int version = 0;
  driver().cuDriverGetVersion(&version);
  if (version < 12040) return test.skip("cuFuncLoad came with CUDA 12.4");
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  if (!test.check(driver().cuModuleLoadData(&module, kAddFive.c_str()), "cuModuleLoadData")) return;
  test.expect_code("cuModuleEnumerateFunctions", driver().cuModuleEnumerateFunctions(&function, 1, module),
                   CUDA_SUCCESS);
  test.expect_code("cuFuncLoad", driver().cuFuncLoad(function), CUDA_SUCCESS);
  test.expect_code("cuFuncIsLoaded", driver().cuFuncIsLoaded(&state, function), CUDA_SUCCESS);
  test.expect_value("loaded", state, CU_FUNCTION_LOADING_STATE_LOADED);
  test.expect_code("again", driver().cuFuncLoad(function), CUDA_SUCCESS);
  test.expect_value("launched", run_on_word(test, function), 42);
  driver().cuModuleUnload(module);
}

constexpr Case kCases[] = {
    {"plain_fat_binary", nullptr, plain_fat_binary},
    {"lz4_fat_binary", nullptr, lz4_fat_binary},
    {"zstd_fat_binary", nullptr, zstd_fat_binary},
    {"fat_binary_wrapper", nullptr, fat_binary_wrapper},
    {"nothing_for_this_device", nullptr, nothing_for_this_device},
    {"linking", nullptr, linking},
    {"linking_errors", nullptr, linking_errors},
    {"libraries", nullptr, libraries},
    {"enumeration", nullptr, enumeration},
    {"loading", nullptr, loading},
};

}  // namespace

const Field kCode{"code", kCases};

}  // namespace softgpu::conformance
