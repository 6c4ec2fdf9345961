#include "wire/pipeline_json.h"

#include <algorithm>
#include <cmath>

#include "decide/pipeline/arrivals.h"
#include "decide/pipeline/joined_outputs.h"
#include "wire/json_value.h"

namespace fairlead::wire {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::size_t kMaxDimensions = 16;
constexpr JsonBounds kPipelineBounds{.depth = 16, .values = std::size_t{1} << 16};
constexpr double kMaxMs = 3'600'000;
constexpr double kMaxMib = 1 << 20;

double read_number(const JsonValue& value, double least, double most) {
  const double number = value.json().is_number() ? value.json().get<double>() : std::nan("");
  if (number >= least && number <= most) return number;
  value.refuse("must be a number between {} and {}", least, most);
  return least;
}

Duration read_ms(const JsonValue& value) {
  return Duration(std::llround(read_number(value, 0, kMaxMs) * 1e6));
}

std::vector<std::uint64_t> read_shape(const JsonValue& list) {
  std::vector<std::uint64_t> shape;
  if (!list.is_list(kMaxDimensions)) return shape;
  for (std::size_t i = 0; i < list.json().size() && list.ok(); ++i) {
    shape.push_back(list.at(i).number(1, std::uint64_t{1} << 40));
  }
  return shape;
}

TensorPort read_port(const JsonValue& value) {
  TensorPort port;
  if (!value.has_only({"name", "shape", "type"})) return port;
  if (const auto name = value.require("name")) port.name = name->text(kMaxTextBytes);
  if (const auto type = value.require("type")) {
    const auto known = element_type_named(type->text(kMaxTextBytes));
    if (!known) type->refuse("is not a type of elements");
    port.type = known.value_or(ElementType::kBytes);
  }
  if (const auto shape = value.require("shape")) port.shape = read_shape(*shape);
  return port;
}

template <typename Item, typename Read>
std::vector<Item> read_list(const JsonValue& list, std::size_t most, Read read) {
  std::vector<Item> items;
  if (!list.is_list(most)) return items;
  for (std::size_t i = 0; i < list.json().size() && list.ok(); ++i) items.push_back(read(list.at(i)));
  return items;
}

// Components and ports may be named before they come: names first, edges after.
class PipelineReader {
 public:
  Dag read(const JsonValue& root) {
    if (!root.has_only({"components", "inputs", "name", "objective_ms", "outputs", "version"})) return dag_;
    if (const auto version = root.require("version")) version->number(1, 1);
    if (const auto name = root.find("name")) dag_.name = name->text(kMaxComponentName);
    if (const auto objective = root.find("objective_ms")) dag_.objective = read_ms(*objective);
    if (const auto inputs = root.require("inputs")) {
      dag_.inputs = read_list<TensorPort>(*inputs, kMaxComponentPorts, read_port);
    }
    const auto components = root.require("components");
    if (!components) return dag_;
    dag_.components = read_list<Component>(*components, kMaxComponents, read_component);
    for (std::size_t i = 0; i < dag_.components.size() && root.ok(); ++i) read_edges(components->at(i), i);
    const auto outputs = root.require("outputs");
    if (!outputs || !outputs->is_list(kMaxComponentPorts)) return dag_;
    for (std::size_t i = 0; i < outputs->json().size() && root.ok(); ++i) read_output(outputs->at(i));
    return dag_;
  }

 private:
  static Component read_component(const JsonValue& value) {
    Component one;
    if (!value.has_only({"inputs", "name", "needs_gpu", "outputs", "profile", "program", "task", "when"})) return one;
    if (const auto name = value.require("name")) one.name = name->text(kMaxTextBytes);
    if (const auto task = value.find("task")) one.task = task->text(kMaxTextBytes);
    if (const auto program = value.find("program")) one.program = read_program(*program);
    one.needs_gpu = one.program.empty();
    if (const auto needs = value.find("needs_gpu")) one.needs_gpu = needs->boolean();
    if (const auto outputs = value.require("outputs")) {
      one.outputs = read_list<TensorPort>(*outputs, kMaxComponentPorts, read_port);
    }
    if (const auto profile = value.find("profile")) read_profile(*profile, one);
    return one;
  }

  // FILE:FUNCTION, whichever way it is said.
  static std::string read_program(const JsonValue& value) {
    if (value.json().is_string()) return std::string(value.text(kMaxTextBytes));
    if (!value.has_only({"file", "function"})) return "";
    const auto file = value.require("file");
    const auto function = value.require("function");
    if (!file || !function) return "";
    return fmt::format("{}:{}", file->text(kMaxTextBytes), function->text(kMaxTextBytes));
  }

  static Bytes read_mib(const JsonValue& value) {
    return Bytes(std::llround(read_number(value, 0, kMaxMib) * (1 << 20)));
  }

  static void read_profile(const JsonValue& value, Component& one) {
    if (!value.has_only({"memory_mib", "ms"})) return;
    if (const auto memory = value.find("memory_mib"); memory && memory->has_only({"peak", "weights"})) {
      if (const auto weights = memory->require("weights")) one.weights = read_mib(*weights);
      if (const auto peak = memory->require("peak")) one.peak = read_mib(*peak);
    }
    const auto times = value.find("ms");
    if (!times) return;
    if (!times->json().is_object() || times->json().size() > kMaxSliceTypes) {
      return times->refuse("must be an object of at most {} times by type of slice", kMaxSliceTypes);
    }
    for (const auto& [slice, member] : times->json().items())
      one.times.push_back(read_time(times->at(slice, member), slice));
  }

  static SliceTime read_time(const JsonValue& value, const std::string& slice) {
    SliceTime time{.slice = slice, .mean = {}, .deviation = {}, .seen = 0};
    if (!value.is_list(3)) return time;
    if (value.json().size() != 3) {
      value.refuse("has {} numbers; mean, standard deviation and how often it was seen are needed",
                   value.json().size());
      return time;
    }
    time.mean = read_ms(value.at(0));
    time.deviation = read_ms(value.at(1));
    time.seen = value.at(2).number(0, std::uint64_t{1} << 53);
    return time;
  }

  void read_edges(const JsonValue& value, std::size_t index) {
    Component& one = dag_.components[index];
    const auto inputs = value.require("inputs");
    if (!inputs) return;
    if (!inputs->json().is_object() || inputs->json().size() > kMaxComponentPorts) {
      return inputs->refuse("must be an object of at most {} inputs by name", kMaxComponentPorts);
    }
    for (const auto& [name, member] : inputs->json().items()) {
      const JsonValue input = inputs->at(name, member);
      ComponentInput made{.name = name, .sources = {}};
      if (member.is_string()) {
        made.sources = {read_source(input)};
      } else {
        made.sources = read_list<TensorSource>(input, kMaxComponentPorts,
                                               [&](const JsonValue& each) { return read_source(each); });
      }
      one.inputs.push_back(std::move(made));
    }
    if (const auto when = value.find("when"); when && when->has_only({"is", "part", "value"})) {
      BranchCondition condition;
      if (const auto source = when->require("value")) condition.value = read_source(*source);
      if (const auto is = when->find("is")) condition.is = is->boolean();
      if (const auto part = when->find("part")) condition.part = read_number(*part, 0, 1);
      one.when = condition;
    }
  }

  // A list of sources is an entry for each of them, which join (decide/pipeline/joined_outputs.h).
  void read_output(const JsonValue& value) {
    DagOutput output;
    if (!value.has_only({"from", "name"})) return;
    if (const auto name = value.require("name")) output.name = name->text(kMaxTextBytes);
    if (!dag_.outputs.empty() && dag_.outputs.back().name == output.name)
      value.refuse("has the name of another output");
    const auto from = value.require("from");
    if (!from) return;
    std::vector<TensorSource> sources;
    if (from->json().is_string()) {
      sources = {read_source(*from)};
    } else {
      sources =
          read_list<TensorSource>(*from, kMaxComponentPorts, [&](const JsonValue& one) { return read_source(one); });
      if (sources.empty() && from->ok()) from->refuse("has 0 sources, 1 to {} are possible", kMaxComponentPorts);
    }
    for (const TensorSource& source : sources) {
      output.from = source;
      dag_.outputs.push_back(output);
    }
  }

  TensorSource read_source(const JsonValue& value) const {
    TensorSource source;
    const std::string_view text = value.text(kMaxTextBytes);
    const std::size_t dot = text.find('.');
    const std::string_view owner = text.substr(0, dot);
    const std::string_view port = dot == std::string_view::npos ? "" : text.substr(dot + 1);
    const std::vector<TensorPort>* ports = &dag_.inputs;
    if (owner != "input") {
      source.component = dag_.find(owner);
      ports = source.component ? &dag_.components[*source.component].outputs : nullptr;
    }
    if (ports != nullptr) {
      const auto found =
          std::find_if(ports->begin(), ports->end(), [&](const TensorPort& one) { return one.name == port; });
      source.port = static_cast<std::size_t>(found - ports->begin());
      if (found != ports->end()) return source;
    }
    value.refuse("is \"{}\"; it must be COMPONENT.OUTPUT or input.NAME, and exist", text.substr(0, 200));
    return source;
  }

  Dag dag_;
};

// What nobody could run, beyond what check_dag() refuses. fairlead/pipeline/description.py has the same.
class DocumentCheck {
 public:
  explicit DocumentCheck(const Dag& dag) : dag_(dag) {}

  Status run() {
    for (const Component& one : dag_.components) {
      if (Status sound = check(one); !sound) return sound;
    }
    for (const DagOutput& output : dag_.outputs) {
      const auto is_it = [&](const TensorPort& input) { return input.name == output.name; };
      if (std::none_of(dag_.inputs.begin(), dag_.inputs.end(), is_it)) continue;
      return fail(Errc::kInvalidArgument,
                  "output {}: an input has that name, and a call names both in one space: give it another",
                  output.name);
    }
    if (const auto missing = what_may_not_come(dag_)) return fail(Errc::kInvalidArgument, "{}", *missing);
    return {};
  }

 private:
  Status check(const Component& one) const {
    if (one.outputs.empty()) {
      return fail(Errc::kInvalidArgument, "component {}: has 0 outputs, 1 to {} are possible", one.name,
                  kMaxComponentPorts);
    }
    if (!one.task.empty() && !is_component_name(one.task)) {
      return fail(
          Errc::kInvalidArgument,
          "component {}: task is \"{}\"; it must be a folder beside pipeline.json: 1 to {} letters, digits, _ or -",
          one.name, one.task.substr(0, 200), kMaxComponentName);
    }
    const std::size_t colon = one.program.rfind(':');
    if (!one.program.empty() && (colon == std::string::npos || colon == 0 || colon + 1 == one.program.size())) {
      return fail(Errc::kInvalidArgument, "component {}: program is \"{}\"; it must be FILE:FUNCTION", one.name,
                  one.program.substr(0, 200));
    }
    if (one.needs_gpu == one.task.empty()) {
      return fail(Errc::kInvalidArgument,
                  "component {}: needs_gpu is {}, and it is a {}: a program runs on the host and gets no GPU, a kernel "
                  "task needs one",
                  one.name, one.needs_gpu, one.task.empty() ? "program" : "kernel task");
    }
    if (!one.needs_gpu && !one.times.empty() && one.times.front().slice != "host") {
      return fail(Errc::kInvalidArgument,
                  "component {}: it needs no GPU and has a time of slice \"{}\"; one of \"host\" is possible", one.name,
                  one.times.front().slice);
    }
    if (!one.needs_gpu && one.peak > Bytes(0)) {
      return fail(Errc::kInvalidArgument,
                  "component {}: it needs no GPU and asks for {} bytes of a slice's memory, 0 are possible", one.name,
                  one.peak.count());
    }
    if (!one.program.empty() && one.inputs.empty()) {
      return fail(Errc::kInvalidArgument, "component {}: is a program and has 0 inputs, 1 to {} are possible", one.name,
                  kMaxComponentPorts);
    }
    if (!one.when) return {};
    const ElementType type = dag_.port(one.when->value).type;
    using enum ElementType;
    if (type != kC64 && type != kC128 && type != kBytes && type != kF16 && type != kBf16) return {};
    return fail(Errc::kInvalidArgument, "component {}: when: {} is {}, one number that is true or false is wanted",
                one.name, dag_.name_of(one.when->value), element_type_name(type));
  }

  const Dag& dag_;
};

json port_json(const TensorPort& port) {
  return {{"name", port.name}, {"type", element_type_name(port.type)}, {"shape", port.shape}};
}

json component_json(const Dag& dag, const Component& one) {
  json made = {{"name", one.name}, {"needs_gpu", one.needs_gpu}};
  made[one.task.empty() ? "program" : "task"] = one.task.empty() ? one.program : one.task;
  made["inputs"] = json::object();
  for (const ComponentInput& input : one.inputs) {
    json sources = json::array();
    for (const TensorSource& source : input.sources) sources.push_back(dag.name_of(source));
    made["inputs"][input.name] = std::move(sources);
  }
  made["outputs"] = json::array();
  for (const TensorPort& port : one.outputs) made["outputs"].push_back(port_json(port));
  if (one.when) {
    made["when"] = {{"value", dag.name_of(one.when->value)}, {"is", one.when->is}, {"part", one.when->part}};
  }
  json times = json::object();
  for (const SliceTime& time : one.times) times[time.slice] = {to_ms(time.mean), to_ms(time.deviation), time.seen};
  made["profile"] = {{"memory_mib", {{"weights", one.weights.mib()}, {"peak", one.peak.mib()}}},
                     {"ms", std::move(times)}};
  return made;
}

}  // namespace

Result<Dag> pipeline_from_json(std::string_view text) {
  if (text.size() > kMaxPipelineBytes) {
    return fail(Errc::kTooLarge, "the pipeline has {} bytes, {} are possible", text.size(), kMaxPipelineBytes);
  }
  const auto document = parse_json(text, "the pipeline", kPipelineBounds);
  if (!document) return fail(document.error());
  Status status;
  Dag dag = PipelineReader().read(JsonValue(*document, status));
  if (!status) return fail(status.error());
  if (const auto problem = check_dag(dag)) return fail(Errc::kInvalidArgument, "{}", problem->message);
  if (Status sound = DocumentCheck(dag).run(); !sound) return fail(sound.error());
  return dag;
}

std::string pipeline_to_json(const Dag& dag) {
  json made = {{"version", 1}, {"name", dag.name}, {"objective_ms", to_ms(dag.objective)}};
  made["inputs"] = made["outputs"] = made["components"] = json::array();
  for (const TensorPort& port : dag.inputs) made["inputs"].push_back(port_json(port));
  for (const JoinedOutput& output : joined_outputs(dag)) {
    json from = json::array();
    for (const std::size_t entry : output.entries) from.push_back(dag.name_of(dag.outputs[entry].from));
    if (from.size() == 1) from = std::string(from[0]);
    made["outputs"].push_back({{"name", output.name}, {"from", std::move(from)}});
  }
  for (const Component& one : dag.components) made["components"].push_back(component_json(dag, one));
  return made.dump(1);
}

}  // namespace fairlead::wire
