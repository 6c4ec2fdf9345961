// libFuzzer: any bytes are a one-off request of a kernel task, with its files, or refused with an error; what is taken names only
// files that came with it.
#include <cstdint>
#include <cstdlib>

#include "base/fuzz_seeds.h"
#include "node/kernel_tasks.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

constexpr const char* kTask = R"({"buffers": {"x": {"role": "input", "type": "f32", "shape": [1]},
  "w": {"role": "constant", "file": "w.bin", "type": "f32", "shape": [1]}, "y": {"role": "output", "type": "f32", "shape": [1]}},
  "kernels": [{"module": "m.ptx", "kernel": "k", "grid": [1], "block": [1],
               "arguments": [{"buffer": "x"}, {"buffer": "w"}, {"buffer": "y", "access": "write"}]}]})";
constexpr const char* kModule =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) { "
    "ret; }\n";

}  // namespace

std::vector<std::string> fuzz_seeds() {
  KernelTaskRequest request{.task = kTask, .files = {{"m.ptx", kModule}, {"w.bin", "1234"}}, .call = "{}"};
  std::vector<std::string> seeds = {wire::encode(request), R"({"task": {"buffers": {}, "kernels": []}, "call": {}})"};
  request.files.push_back({"unused", ""});
  seeds.push_back(wire::encode(request));
  return seeds;
}

}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto request =
      wire::is_binary(bytes) ? wire::decode_kernel_task_request(bytes) : wire::kernel_task_request_from_json(bytes);
  if (!request || !validate_request(*request)) return 0;
  const auto task = read_requested_task(*request);
  if (!task) {
    require(!task.error().message.empty());
    return 0;
  }
  require(task->spec->module_files.size() == task->spec->task.modules.size());
  for (const auto& lent : task->lent) require(lent->file->bytes().count() > 0 || lent->key.size() > 64);
  return 0;
}
