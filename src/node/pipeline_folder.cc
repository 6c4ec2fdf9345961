#include "node/pipeline_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/read_file.h"
#include "decide/pipeline/joined_outputs.h"
#include "wire/kernel_task_codec.h"
#include "wire/pipeline_json.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr char kPipelineFile[] = "pipeline.json";
constexpr std::array<int, 5> kComputeSlices{1, 2, 3, 4, 7};
constexpr Duration kUnsaid = std::chrono::milliseconds(10);  // of a component, on a whole GPU

int compute_of(const std::string& slice) {
  return slice.size() == 2 && slice[1] == 'g' && slice[0] >= '1' && slice[0] <= '9' ? slice[0] - '0' : 0;
}

// Types that its author has not measured are predicted: from the nearest that is known, by the number of compute slices. Where nothing is
// known all components are taken for equal: without a time no slice would fit. The node sees better as they run (component_times.h).
void predict_times(Component& component) {
  const bool is_unsaid = component.times.empty();
  for (const int compute : kComputeSlices) {
    if (!is_unsaid) break;
    const Duration mean = kUnsaid * kComputeSlices.back() / compute;
    component.times.push_back({.slice = std::to_string(compute) + "g", .mean = mean, .deviation = {}, .seen = 0});
  }
  std::vector<std::pair<int, Duration>> known;
  for (const SliceTime& time : component.times) {
    if (compute_of(time.slice) > 0) known.emplace_back(compute_of(time.slice), time.mean);
  }
  if (known.empty()) return;
  for (const int compute : kComputeSlices) {
    const auto nearest = *std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
      return std::abs(a.first - compute) < std::abs(b.first - compute);
    });
    if (nearest.first == compute || component.times.size() >= kMaxSliceTypes) continue;
    const Duration mean = nearest.second * nearest.first / compute;
    component.times.push_back(
        {.slice = std::to_string(compute) + "g", .mean = std::clamp(mean, Duration(1), kMaxComponentTime)});
  }
}

// A folder of the bundle; nothing outside of it.
Result<std::string> folder_in(const std::string& code_path, const Component& component) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::path(code_path) / component.task, error);
  const fs::path inside = path.lexically_relative(fs::weakly_canonical(code_path, error));
  if (error || component.task.empty() || inside.empty() || inside == "." || *inside.begin() == "..") {
    return fail(Errc::kInvalidArgument, "component {}: task is '{}', which is no folder in the code bundle",
                component.name, component.task);
  }
  if (!is_kernel_task(path.string())) {
    return fail(Errc::kInvalidArgument,
                "component {}: task is '{}': there is no kernel task (task.json) in that folder", component.name,
                component.task);
  }
  return path.string();
}

Result<std::uint32_t> buffer_of(const KernelTask& task, const Component& component, const std::string& port,
                                Bytes bytes, bool is_output) {
  for (std::uint32_t b = 0; b < task.buffers.size(); ++b) {
    const BufferSpec& buffer = task.buffers[b];
    if (buffer.name != port) continue;
    const bool fits =
        buffer.role == BufferRole::kInOut || buffer.role == (is_output ? BufferRole::kOutput : BufferRole::kInput);
    if (!fits) {
      return fail(Errc::kInvalidArgument, "component {}: {} {} is a buffer of its task that is {}", component.name,
                  is_output ? "output" : "input", port, buffer_role_name(buffer.role));
    }
    if (buffer.bytes != bytes) {
      return fail(Errc::kInvalidArgument, "component {}: {} {} has {} bytes, the buffer of its task {}", component.name,
                  is_output ? "output" : "input", port, bytes.count(), buffer.bytes.count());
    }
    return b;
  }
  return fail(Errc::kInvalidArgument, "component {}: its task has no buffer {}, which is its {}", component.name, port,
              is_output ? "output" : "input");
}

Status check_all_bound(const KernelTask& task, const Component& component, const ComponentTask& made) {
  for (std::uint32_t b = 0; b < task.buffers.size(); ++b) {
    const BufferRole role = task.buffers[b].role;
    const bool in = role == BufferRole::kInput || role == BufferRole::kInOut;
    const bool out = role == BufferRole::kOutput || role == BufferRole::kInOut;
    const auto has = [b](const std::vector<std::uint32_t>& all) { return std::count(all.begin(), all.end(), b) == 1; };
    if ((!in || has(made.inputs)) && (!out || has(made.outputs))) continue;
    return fail(Errc::kInvalidArgument, "component {}: buffer {} of its task is {} and must be one of its {}",
                component.name, task.buffers[b].name, buffer_role_name(role),
                in && !has(made.inputs) ? "inputs" : "outputs");
  }
  return {};
}

// FILE:FUNCTION, a file of the bundle: Python, or what can be executed.
Status check_program(const std::string& code_path, const Component& component) {
  const std::string file = component.program.substr(0, component.program.rfind(':'));
  const auto refuse = [&](std::string_view what) {
    return fail(Errc::kInvalidArgument, "component {}: program's file is '{}', which {}", component.name,
                file.substr(0, 200), what);
  };
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::path(code_path) / file, error);
  const fs::path inside = path.lexically_relative(fs::weakly_canonical(code_path, error));
  if (error || inside.empty() || *inside.begin() == "..") return refuse("is not in the code bundle");
  if (!fs::is_regular_file(path, error)) return refuse("is no file of the code bundle");
  const bool is_executable = (fs::status(path, error).permissions() & fs::perms::others_exec) != fs::perms::none;
  if (path.extension() != ".py" && !is_executable) return refuse("is neither Python (.py) nor executable by everybody");
  return {};
}

// Its buffers are its inputs, then its outputs, each once.
Result<ComponentTask> read_program(const std::string& code_path, const Component& component) {
  if (Status sound = check_program(code_path, component); !sound) return fail(sound.error());
  ComponentTask made;
  for (std::uint32_t i = 0; i < component.inputs.size(); ++i) made.inputs.push_back(i);
  const auto first = static_cast<std::uint32_t>(component.inputs.size());
  for (std::uint32_t o = 0; o < component.outputs.size(); ++o) made.outputs.push_back(first + o);
  return made;
}

Result<ComponentTask> read_component(const std::string& code_path, const Dag& dag, Component& component) {
  if (!component.needs_gpu) return read_program(code_path, component);
  const auto folder = folder_in(code_path, component);
  if (!folder) return fail(folder.error());
  auto task = read_kernel_task(*folder);
  if (!task) return fail(task.error().code, "component {}: {}", component.name, task.error().message);
  ComponentTask made{.spec = task->spec, .constant_files = {}, .inputs = {}, .outputs = {}};
  for (const BundledConstant& constant : task->constants) made.constant_files[constant.key] = constant.file;
  const KernelTask& kernels = made.spec->task;
  Bytes weights{0}, all{0};
  for (const BufferSpec& buffer : kernels.buffers) {
    all += buffer.bytes;
    if (buffer.role != BufferRole::kConstant) continue;
    weights += buffer.bytes;
    if (made.constant_files.contains(buffer.constant)) continue;
    return fail(Errc::kInvalidArgument,
                "component {}: constant {} is the object '{}'; constants of a pipeline's tasks are files of the bundle",
                component.name, buffer.name, buffer.constant);
  }
  for (const ComponentInput& input : component.inputs) {
    const auto buffer = buffer_of(kernels, component, input.name, dag.port(input.sources.front()).bytes(), false);
    if (!buffer) return fail(buffer.error());
    made.inputs.push_back(*buffer);
  }
  for (const TensorPort& output : component.outputs) {
    const auto buffer = buffer_of(kernels, component, output.name, output.bytes(), true);
    if (!buffer) return fail(buffer.error());
    made.outputs.push_back(*buffer);
  }
  if (Status bound = check_all_bound(kernels, component, made); !bound) return fail(bound.error());
  // What its author says too little of, its task's buffers say.
  component.weights = std::max(component.weights, weights);
  component.peak = std::max(component.peak, std::max(component.weights, all));
  return made;
}

KernelTask interface_of(const Dag& dag) {
  KernelTask interface;
  const auto add = [&](const std::string& name, const TensorPort& port, BufferRole role) {
    interface.buffers.push_back(
        {.name = name, .bytes = port.bytes(), .role = role, .type = port.type, .shape = port.shape, .constant = {}});
  };
  for (const TensorPort& input : dag.inputs) add(input.name, input, BufferRole::kInput);
  for (const JoinedOutput& output : joined_outputs(dag)) {
    add(output.name, dag.port(dag.outputs[output.entries.front()].from), BufferRole::kOutput);
  }
  return interface;
}

// A call names both in one space, as those of kernel tasks do.
Status check_names(const Dag& dag) {
  std::set<std::string> names;
  for (const TensorPort& input : dag.inputs) names.insert(input.name);
  for (const JoinedOutput& output : joined_outputs(dag)) {
    if (names.insert(output.name).second) continue;
    return fail(Errc::kInvalidArgument, "outputs.{}: an input or another output has that name", output.name);
  }
  return {};
}

}  // namespace

bool is_pipeline(const std::string& code_path) {
  std::error_code error;
  return fs::is_regular_file(code_path + "/" + kPipelineFile, error) && !fs::exists(code_path + "/bootstrap", error);
}

Result<BundledTask> read_pipeline(const std::string& code_path, const std::string& tenant) {
  auto text = read_whole_file(code_path + "/" + kPipelineFile);
  if (!text) return fail(text.error());
  auto dag = wire::pipeline_from_json(*text);
  if (!dag) return fail(dag.error().code, "{}: {}", kPipelineFile, dag.error().message);
  if (Status named = check_names(*dag); !named)
    return fail(named.error().code, "{}: {}", kPipelineFile, named.error().message);
  auto program = std::make_shared<PipelineProgram>();  // shared by the function and the pipelines that run it
  for (Component& component : dag->components) {
    auto task = read_component(code_path, *dag, component);
    if (!task) return fail(task.error().code, "{}: {}", kPipelineFile, task.error().message);
    task->kind.is_said = !component.times.empty();
    if (component.needs_gpu) predict_times(component);
    if (task->spec) task->kind.content = to_hex(as_text(sha256(tenant + "\n" + wire::encode(task->spec->task))));
    program->tasks.push_back(*std::move(task));
  }
  const auto& all = dag->components;
  if (std::none_of(all.begin(), all.end(), [](const Component& one) { return one.needs_gpu; })) {
    return fail(Errc::kInvalidArgument,
                "{}: none of its {} components needs a GPU, {} among them; deploy it as a function of its own",
                kPipelineFile, all.size(), all.front().name);
  }
  // What was predicted, and what the tasks say of memory, was not in the file.
  if (const auto problem = check_dag(*dag))
    return fail(Errc::kInvalidArgument, "{}: {}", kPipelineFile, problem->message);
  program->interface = interface_of(*dag);
  program->dag = *std::move(dag);
  BundledTask bundled;
  bundled.pipeline = std::move(program);
  return bundled;
}

}  // namespace fairlead
