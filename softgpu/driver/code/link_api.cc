// The linker: inputs are gathered as PTX, linked as text (softgpu/ptx/text/link.h), and handed out as a fat binary, which says
// how long it is: programs copy the result and pass it to cuModuleLoadData without a length.
#include <atomic>
#include <list>
#include <string>

#include "softgpu/device/time/busy_meter.h"
#include "softgpu/driver/code/fatbin.h"
#include "softgpu/driver/code/module.h"
#include "softgpu/driver/handle.h"
#include "softgpu/driver/log.h"
#include "softgpu/ptx/text/header.h"
#include "softgpu/ptx/text/link.h"

struct CUlinkState_st {
  static constexpr std::uint32_t kMagic = 0x6C696E6B;  // "link"
  std::atomic<std::uint32_t> magic{0};
  int architecture = 0;  // of the device linked for
  softgpu::JitOptions jit;
  std::uint64_t begin_ns = 0;
  std::list<std::pair<std::string, std::string>> inputs;  // name and PTX
  std::string error;                                      // all messages so far
  std::vector<std::byte> image;
};

using softgpu::CodeImage;
using softgpu::JitOptions;

namespace {

using LinkStates = softgpu::HandlePool<CUlinkState_st>;

CUresult check_state(CUlinkState state) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return LinkStates::valid(state) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult refuse(CUlinkState_st& state, CUresult result, const std::string& error) {
  state.error += "error   : " + error + "\n";
  state.jit.report(state.error, "", state.begin_ns);
  softgpu::log_line("link: " + error);
  return result;
}

// INVALID_VALUE for types that do not exist; objects and libraries of the host's formats hold machine code.
CUresult check_type(CUjitInputType type) {
  switch (type) {
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_PTX:
    case CU_JIT_INPUT_FATBINARY: return CUDA_SUCCESS;
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY: return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case CU_JIT_INPUT_NVVM: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult add(CUlinkState_st& state, std::span<const std::byte> data, const std::string& name) {
  CodeImage image;
  std::string error;
  std::string_view text;
  CUresult result = softgpu::read_image(data, image, error);
  if (result == CUDA_SUCCESS) result = softgpu::choose_text(image, state.architecture, text, error);
  if (result != CUDA_SUCCESS) return refuse(state, result, name + ": " + error);
  state.inputs.emplace_back(name, text);
  return CUDA_SUCCESS;
}

// Programs load what was linked, and expect the loader's messages from the linker: the code is tried here.
CUresult try_load(CUlinkState_st& state, const std::string& text) {
  CUcontext context = nullptr;
  std::string error;
  if (softgpu::healthy_context(context) != CUDA_SUCCESS) return CUDA_SUCCESS;
  const CUresult result = softgpu::LoadedModule(context, {}).load(text, 0, error);
  return result == CUDA_SUCCESS ? CUDA_SUCCESS : refuse(state, result, error);
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  CUcontext context = nullptr;
  const JitOptions jit(count, options, values);
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::healthy_context(context));
  SOFTGPU_TRY(jit.check());
  CUlinkState_st* made = LinkStates::take();
  made->architecture = softgpu::architecture_of(context->device());
  made->jit = jit;
  made->begin_ns = softgpu::monotonic_ns();
  made->inputs.clear();
  made->error.clear();
  made->image.clear();
  *state = made;
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned count, CUjit_option* options, void** values) {
  SOFTGPU_TRY(check_state(state));
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(JitOptions(count, options, values).check());
  const std::string label = name != nullptr ? name : "input " + std::to_string(state->inputs.size() + 1);
  if (const CUresult result = check_type(type); result != CUDA_SUCCESS) {
    return refuse(*state, result, label + ": only PTX and fat binaries with PTX can be linked");
  }
  return add(*state, {static_cast<const std::byte*>(data), size}, label);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                          CUjit_option* options, void** values) {
  std::vector<std::byte> bytes;
  SOFTGPU_TRY(check_state(state));
  SOFTGPU_TRY(softgpu::read_file(path, bytes));
  return cuLinkAddData_v2(state, type, bytes.data(), bytes.size(), path, count, options, values);
}

CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  SOFTGPU_TRY(check_state(state));
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<softgpu::ptx::LinkInput> inputs;
  for (const auto& [name, text] : state->inputs) inputs.push_back({name, text});
  if (inputs.empty()) return refuse(*state, CUDA_ERROR_INVALID_VALUE, "nothing to link");
  const softgpu::ptx::LinkOutput output = softgpu::ptx::link(inputs);
  if (!output.error.empty()) return refuse(*state, CUDA_ERROR_INVALID_PTX, output.error);
  SOFTGPU_TRY(try_load(*state, output.text));
  const auto header = softgpu::ptx::read_header(output.text).value_or(softgpu::ptx::Header{});
  const softgpu::PtxForArchitecture entry[] = {
      {static_cast<unsigned>(state->architecture), output.text, static_cast<unsigned>(header.version)}};
  state->image = softgpu::write_fatbin(entry, softgpu::Compression::kNone);
  state->jit.report(state->error, "", state->begin_ns);
  *image = state->image.data();
  if (size != nullptr) *size = state->image.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  SOFTGPU_TRY(check_state(state));
  state->inputs.clear();
  state->image = {};
  LinkStates::give_back(state);
  return CUDA_SUCCESS;
}

// The first versions took 32-bit option values in the same places.
CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return cuLinkCreate_v2(count, options, values, state);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned count, CUjit_option* options, void** values) {
  return cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count, CUjit_option* options,
                       void** values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}
