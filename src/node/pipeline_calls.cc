#include "node/pipeline_calls.h"

#include "decide/pipeline/joined_outputs.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {

Result<std::vector<std::string>> read_pipeline_call(const PipelineProgram& program, const std::string& payload) {
  const KernelTask& interface = program.interface;
  auto call = wire::is_binary(payload) ? wire::decode_kernel_task_call(payload)
                                       : wire::kernel_task_call_from_json(interface, payload);
  if (!call) return fail(call.error());
  if (Status valid = validate_call(interface, *call); !valid) return fail(valid.error());
  std::vector<std::string> inputs(program.dag.inputs.size());
  for (CallBinding& input : call->inputs) {
    if (!input.key.empty()) {
      return fail(Errc::kInvalidArgument, "input {} is the object '{}': inputs of a pipeline come in the call",
                  interface.buffers[input.buffer].name, input.key);
    }
    inputs[input.buffer] = std::move(input.bytes);
  }
  for (const CallBinding& output : call->outputs) {
    if (output.key.empty()) continue;
    return fail(Errc::kInvalidArgument,
                "output {} is to be the object '{}': outputs of a pipeline are answered in the call",
                interface.buffers[output.buffer].name, output.key);
  }
  return inputs;
}

Answer pipeline_answer(InvocationId invocation, bool is_binary, const PipelineProgram& program,
                       const PipelineInstance::Reply& reply) {
  KernelTaskAnswer content{.outputs = {}, .phases = reply.phases};
  const auto first = static_cast<std::uint32_t>(program.dag.inputs.size());
  const std::vector<JoinedOutput> joined = joined_outputs(program.dag);
  for (std::uint32_t o = 0; o < joined.size(); ++o) {
    for (const std::size_t entry : joined[o].entries) {
      if (!reply.outputs[entry]) continue;
      content.outputs.push_back({.buffer = first + o, .key = {}, .bytes = std::string(reply.outputs[entry]->bytes())});
      break;
    }
  }
  return {.invocation = invocation,
          .is_error = false,
          .content_type = is_binary ? wire::kKernelTaskContentType : "application/json",
          .payload = is_binary ? wire::encode(content) : wire::kernel_task_answer_to_json(program.interface, content),
          .failure = {}};
}

std::size_t size_of(const PipelineInstance::Reply& reply) {
  std::size_t size = 0;
  for (const auto& output : reply.outputs) size += output ? output->bytes().size() : 0;
  return size;
}

std::string broken_words(const StartAttempts& starts) {
  return fmt::format(
      "it did not start {} times in a row, the last time because {}. Deploy it again, or call it again later: for a "
      "call it "
      "is tried once a minute",
      starts.failures(), starts.why());
}

}  // namespace fairlead
