// task.json: names become indices on the way in, indices names on the way out. Only what JSON alone can get wrong is refused
// here; what the task means is validate_task()'s.
#include <limits>
#include <map>

#include "base/base64.h"
#include "wire/element_values.h"
#include "wire/json_value.h"
#include "wire/kernel_task_codec.h"

namespace fairlead::wire {
namespace {

using nlohmann::json;
using Access = BufferArgument::Access;

constexpr auto kMaxU32 = std::numeric_limits<std::uint32_t>::max();
constexpr auto kMaxU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMaxBase64 = (kMaxLiteralBytes + 2) / 3 * 4;

// In the order of Access; by role is said by leaving it out.
constexpr std::array<std::string_view, 4> kAccesses{"", "read", "write", "read_write"};

// ---- from JSON

class TaskReader {
 public:
  explicit TaskReader(const JsonValue& root) : root_(root) {}

  KernelTask read() {
    if (!root_.has_only({"buffers", "iterations", "kernels"})) return {};
    if (const auto buffers = root_.find("buffers")) read_buffers(*buffers);
    if (const auto kernels = root_.require("kernels")) read_kernels(*kernels);
    if (const auto iterations = root_.find("iterations")) task_.iterations = u32(*iterations, 1);
    return std::move(task_);
  }

 private:
  static std::uint32_t u32(const JsonValue& value, std::uint32_t least = 0) {
    return static_cast<std::uint32_t>(value.number(least, kMaxU32));
  }

  // ---- buffers

  void read_buffers(const JsonValue& buffers) {
    if (!buffers.json().is_object()) return buffers.refuse("must be an object of buffers by name");
    if (buffers.json().size() > kMaxTaskBuffers) {
      return buffers.refuse("has {} members; at most {} are possible", buffers.json().size(), kMaxTaskBuffers);
    }
    for (const auto& [name, member] : buffers.json().items()) {
      if (!buffers.ok()) return;
      buffer_indices_.emplace(name, static_cast<std::uint32_t>(task_.buffers.size()));
      task_.buffers.push_back(read_buffer(name, buffers.at(name, member)));
    }
  }

  static BufferSpec read_buffer(const std::string& name, const JsonValue& value) {
    BufferSpec buffer{.name = name};
    if (!value.has_only({"bytes", "key", "role", "shape", "type", "zeroed"})) return buffer;
    if (const auto role = value.require("role")) buffer.role = read_role(*role);
    if (const auto type = value.find("type")) buffer.type = read_type(*type);
    if (const auto key = value.find("key")) buffer.constant = key->text(kMaxObjectKeyLength);
    if (const auto zeroed = value.find("zeroed")) buffer.zeroed = zeroed->boolean();
    if (const auto shape = value.find("shape"); shape && shape->is_list(kMaxShapeDimensions)) {
      for (std::size_t i = 0; i < shape->json().size(); ++i) buffer.shape.push_back(shape->at(i).number(1, kMaxU64));
    }
    buffer.bytes = read_bytes(value, buffer);
    return buffer;
  }

  static BufferRole read_role(const JsonValue& value) {
    const std::string_view name = value.text(kMaxTaskNameLength);
    const auto role = buffer_role_named(name);
    if (!role) value.refuse("is '{}', it must be input, constant, output, inout or temporary", name);
    return role.value_or(BufferRole::kTemporary);
  }

  static ElementType read_type(const JsonValue& value) {
    const std::string_view name = value.text(kMaxTaskNameLength);
    const auto type = element_type_named(name);
    if (!type) {
      value.refuse("is '{}', it must be bytes, s8, u8, s16, u16, s32, u32, s64, u64, f16, bf16, f32, f64, c64 or c128",
                   name);
    }
    return type.value_or(ElementType::kBytes);
  }

  static Bytes read_bytes(const JsonValue& value, const BufferSpec& buffer) {
    if (const auto bytes = value.find("bytes")) {
      return Bytes(static_cast<std::int64_t>(bytes->number(1, static_cast<std::uint64_t>(kMaxObjectBytes.count()))));
    }
    const auto bytes = buffer.shape.empty() ? std::nullopt : shape_bytes(buffer.type, buffer.shape);
    if (bytes) return *bytes;
    if (buffer.shape.empty()) value.refuse("has neither 'bytes' nor 'shape'; one of them is required");
    value.refuse("has a shape of more than {} bytes, the largest a buffer may have", kMaxObjectBytes.count());
    return Bytes(0);
  }

  // ---- kernels

  void read_kernels(const JsonValue& kernels) {
    if (!kernels.is_list(kMaxTaskKernels)) return;
    task_.kernels.reserve(kernels.json().size());
    for (std::size_t i = 0; kernels.ok() && i < kernels.json().size(); ++i) {
      task_.kernels.push_back(read_kernel(kernels.at(i)));
    }
  }

  KernelLaunch read_kernel(const JsonValue& value) {
    KernelLaunch kernel;
    if (!value.has_only({"arguments", "block", "grid", "kernel", "module", "shared_bytes"})) return kernel;
    if (const auto module = value.require("module")) kernel.module = module_index(*module);
    if (const auto name = value.require("kernel")) kernel.kernel = name->text(kMaxKernelNameLength);
    if (const auto grid = value.require("grid")) kernel.grid = read_dim(*grid);
    if (const auto block = value.require("block")) kernel.block = read_dim(*block);
    if (const auto bytes = value.find("shared_bytes")) kernel.shared_bytes = u32(*bytes);
    const auto arguments = value.find("arguments");
    if (!arguments || !arguments->is_list(kMaxKernelArguments)) return kernel;
    for (std::size_t i = 0; value.ok() && i < arguments->json().size(); ++i) {
      kernel.arguments.push_back(read_argument(arguments->at(i)));
    }
    return kernel;
  }

  // Modules are there by being named.
  std::uint32_t module_index(const JsonValue& value) {
    const std::string name(value.text(kMaxTaskNameLength));
    const auto [found, is_new] = module_indices_.emplace(name, static_cast<std::uint32_t>(task_.modules.size()));
    if (is_new && task_.modules.size() == kMaxTaskModules) {
      value.refuse("is '{}', one more than the {} modules a task may have", name, kMaxTaskModules);
    } else if (is_new) {
      task_.modules.push_back({.name = name, .sha256 = {}});
    }
    return found->second;
  }

  static Dim3 read_dim(const JsonValue& value) {
    Dim3 dim{1, 1, 1};
    if (!value.is_list(dim.size())) return dim;
    for (std::size_t axis = 0; axis < value.json().size(); ++axis) dim[axis] = u32(value.at(axis), 1);
    return dim;
  }

  KernelArgument read_argument(const JsonValue& value) const {
    if (value.json().is_object() && value.json().contains("buffer")) {
      return value.has_only({"access", "buffer", "offset"}) ? read_buffer_argument(value) : BufferArgument{};
    }
    if (value.json().is_object() && value.json().contains("bytes")) return read_literal(value);
    return read_scalar(value);
  }

  BufferArgument read_buffer_argument(const JsonValue& value) const {
    BufferArgument argument;
    if (const auto buffer = value.require("buffer")) argument.buffer = buffer_index(*buffer);
    if (const auto offset = value.find("offset")) argument.offset = offset->number(0, kMaxU64);
    if (const auto access = value.find("access")) argument.access = read_access(*access);
    return argument;
  }

  std::uint32_t buffer_index(const JsonValue& value) const {
    const std::string_view name = value.text(kMaxTaskNameLength);
    const auto found = buffer_indices_.find(name);
    if (found != buffer_indices_.end()) return found->second;
    value.refuse("is '{}', which is no buffer of the task", name);
    return 0;
  }

  static Access read_access(const JsonValue& value) {
    const std::string_view name = value.text(kMaxTaskNameLength);
    const auto found = std::find(kAccesses.begin() + 1, kAccesses.end(), name);
    if (found != kAccesses.end()) return static_cast<Access>(found - kAccesses.begin());
    value.refuse("is '{}', it must be read, write or read_write; leave it out for what the role says", name);
    return Access::kByRole;
  }

  LiteralArgument read_literal(const JsonValue& value) const {
    LiteralArgument literal;
    if (!value.has_only({"bytes", "relocations"})) return literal;
    const auto bytes = value.require("bytes");
    if (bytes && bytes->text(kMaxBase64).size() <= kMaxBase64) literal.bytes = bytes->bytes();
    const auto relocations = value.find("relocations");
    if (!relocations || !relocations->is_list(kMaxLiteralBytes / sizeof(std::uint64_t))) return literal;
    for (std::size_t i = 0; value.ok() && i < relocations->json().size(); ++i) {
      const JsonValue relocation = relocations->at(i);
      if (!relocation.has_only({"access", "at", "buffer", "offset"})) return literal;
      const auto at = relocation.require("at");
      literal.relocations.push_back({.at = at ? u32(*at) : 0, .target = read_buffer_argument(relocation)});
    }
    return literal;
  }

  // {"f32": 2.0}
  static LiteralArgument read_scalar(const JsonValue& value) {
    LiteralArgument literal;
    if (!value.json().is_object() || value.json().size() != 1) {
      value.refuse(
          "must be one of {{\"buffer\": NAME}}, {{\"bytes\": BASE64}} and {{TYPE: NUMBER}}, such as {{\"s32\": 1}}");
      return literal;
    }
    const auto& [name, number] = *value.json().get_ref<const json::object_t&>().begin();
    const auto type = element_type_named(name);
    if (type) {
      append_element(*type, value.at(name, number), literal.bytes);
    } else {
      value.refuse("has '{}', which is not known; known are buffer, bytes and the types of numbers", name);
    }
    return literal;
  }

  const JsonValue& root_;
  KernelTask task_;
  std::map<std::string, std::uint32_t, std::less<>> buffer_indices_;
  std::map<std::string, std::uint32_t, std::less<>> module_indices_;
};

// ---- to JSON

json json_of(const BufferSpec& buffer) {
  json object = {{"role", buffer_role_name(buffer.role)}, {"bytes", buffer.bytes.count()}};
  if (buffer.type != ElementType::kBytes) object["type"] = element_type_name(buffer.type);
  if (!buffer.shape.empty()) object["shape"] = buffer.shape;
  if (!buffer.constant.empty()) object["key"] = buffer.constant;
  if (buffer.zeroed) object["zeroed"] = true;
  return object;
}

json json_of(const KernelTask& task, const BufferArgument& argument) {
  json object = {{"buffer", task.buffers.at(argument.buffer).name}};
  if (argument.offset != 0) object["offset"] = argument.offset;
  if (argument.access != Access::kByRole) object["access"] = kAccesses.at(static_cast<std::size_t>(argument.access));
  return object;
}

json json_of(const KernelTask& task, const KernelArgument& argument) {
  if (const auto* buffer = std::get_if<BufferArgument>(&argument)) return json_of(task, *buffer);
  const auto& literal = std::get<LiteralArgument>(argument);
  json object = {{"bytes", base64_encode(literal.bytes)}};
  for (const auto& relocation : literal.relocations) {
    json place = json_of(task, relocation.target);
    place["at"] = relocation.at;
    object["relocations"].push_back(std::move(place));
  }
  return object;
}

json json_of(const KernelTask& task, const KernelLaunch& kernel) {
  json arguments = json::array();
  for (const KernelArgument& argument : kernel.arguments) arguments.push_back(json_of(task, argument));
  json object = {{"module", task.modules.at(kernel.module).name},
                 {"kernel", kernel.kernel},
                 {"grid", kernel.grid},
                 {"block", kernel.block},
                 {"arguments", std::move(arguments)}};
  if (kernel.shared_bytes != 0) object["shared_bytes"] = kernel.shared_bytes;
  return object;
}

}  // namespace

Result<KernelTask> kernel_task_from_json(std::string_view text) {
  const auto document = parse_json(text, "task.json");
  if (!document) return fail(document.error());
  Status status;
  const JsonValue root(*document, status);
  KernelTask task = TaskReader(root).read();
  if (!status) return fail(status.error());
  return task;
}

std::string kernel_task_to_json(const KernelTask& task) {
  json buffers = json::object();
  for (const BufferSpec& buffer : task.buffers) buffers[buffer.name] = json_of(buffer);
  json kernels = json::array();
  for (const KernelLaunch& kernel : task.kernels) kernels.push_back(json_of(task, kernel));
  json object = {{"buffers", std::move(buffers)}, {"kernels", std::move(kernels)}};
  if (task.iterations != 1) object["iterations"] = task.iterations;
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace fairlead::wire
