// What can be said against a task before anything runs: its modules, its buffers, then each kernel against the entry
// point it names, the device and the buffers.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "model/kernel_task.h"
#include "model/kernel_task_access.h"

namespace fairlead {
namespace {

constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kAddressBytes = 8;
constexpr std::array<std::string_view, 3> kAxes{"x", "y", "z"};

Status validate_count(std::string_view field, std::size_t count, std::size_t least, std::size_t most) {
  if (count < least) return fail(Errc::kInvalidArgument, "{} is empty; a task has {} to {}", field, least, most);
  if (count <= most) return {};
  return fail(Errc::kTooLarge, "{}: {} of them; a task has at most {}", field, count, most);
}

Status validate_name(const std::string& where, std::string_view name) {
  if (name.empty() || name.size() > kMaxTaskNameLength) {
    return fail(Errc::kInvalidArgument, "{}: its name has {} bytes; it must have 1 to {}", where, name.size(),
                kMaxTaskNameLength);
  }
  const bool is_printable = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (is_printable) return {};
  return fail(Errc::kInvalidArgument, "{}: its name has a byte that is not printable ASCII", where);
}

// ---- modules

Status validate_modules(const std::vector<KernelModule>& modules) {
  if (Status status = validate_count("modules", modules.size(), 1, kMaxTaskModules); !status) return status;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const KernelModule& module = modules[i];
    if (Status status = validate_name(fmt::format("modules[{}]", i), module.name); !status) return status;
    if (!names.insert(module.name).second) {
      return fail(Errc::kInvalidArgument, "modules[{}] ({}): an earlier module has that name; each needs its own", i,
                  module.name);
    }
    if (module.sha256.size() != kDigestBytes) {
      return fail(Errc::kInvalidArgument, "modules[{}] ({}): its sha256 has {} bytes; it must have {}", i, module.name,
                  module.sha256.size(), kDigestBytes);
    }
  }
  return {};
}

// ---- buffers

Status validate_size(const std::string& where, const BufferSpec& buffer) {
  if (buffer.bytes.count() < 1 || buffer.bytes > kMaxObjectBytes) {
    return fail(buffer.bytes > kMaxObjectBytes ? Errc::kTooLarge : Errc::kInvalidArgument,
                "{}: bytes is {}; it must be between 1 and {}", where, buffer.bytes.count(), kMaxObjectBytes.count());
  }
  const auto bytes = static_cast<std::uint64_t>(buffer.bytes.count());
  if (bytes % element_bytes(buffer.type) != 0) {
    return fail(Errc::kInvalidArgument, "{}: bytes is {}; {} elements have {} bytes each, it must be a multiple", where,
                bytes, element_type_name(buffer.type), element_bytes(buffer.type));
  }
  if (buffer.shape.empty()) return {};
  if (buffer.shape.size() > kMaxShapeDimensions) {
    return fail(Errc::kInvalidArgument, "{}: shape has {} dimensions; at most {} are possible", where,
                buffer.shape.size(), kMaxShapeDimensions);
  }
  const auto needed = shape_bytes(buffer.type, buffer.shape);
  if (needed == buffer.bytes) return {};
  if (!needed) {
    return fail(Errc::kTooLarge, "{}: shape needs more than {} bytes, the largest a buffer may have", where,
                kMaxObjectBytes.count());
  }
  return fail(Errc::kInvalidArgument, "{}: shape of {} needs {} bytes, but bytes is {}; leave one of them out", where,
              element_type_name(buffer.type), needed->count(), bytes);
}

Status validate_role(const std::string& where, const BufferSpec& buffer) {
  const bool is_constant = buffer.role == BufferRole::kConstant;
  if (!is_constant && !buffer.constant.empty()) {
    return fail(Errc::kInvalidArgument, "{}: key is '{}', but its role is {}; only a constant names an object here",
                where, buffer.constant.substr(0, kMaxObjectKeyLength), buffer_role_name(buffer.role));
  }
  if (buffer.zeroed && buffer.role != BufferRole::kOutput && buffer.role != BufferRole::kTemporary) {
    return fail(Errc::kInvalidArgument, "{}: zeroed is true, but its role is {}; outputs and temporaries can be zeroed",
                where, buffer_role_name(buffer.role));
  }
  if (!is_constant) return {};
  if (Status status = validate_object_key(buffer.constant); !status) {
    return fail(Errc::kInvalidArgument, "{}: {}", where, status.error().message);
  }
  return {};
}

Status validate_buffers(const std::vector<BufferSpec>& buffers, Bytes memory) {
  if (Status status = validate_count("buffers", buffers.size(), 0, kMaxTaskBuffers); !status) return status;
  std::set<std::string_view> names;
  Bytes sum{0};
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferSpec& buffer = buffers[i];
    std::string where = fmt::format("buffers[{}]", i);
    if (Status status = validate_name(where, buffer.name); !status) return status;
    where += fmt::format(" ({})", buffer.name);
    if (!names.insert(buffer.name).second) {
      return fail(Errc::kInvalidArgument, "{}: an earlier buffer has that name; each needs its own", where);
    }
    if (Status status = validate_role(where, buffer); !status) return status;
    if (Status status = validate_size(where, buffer); !status) return status;
    sum += buffer.bytes;
  }
  if (memory.count() == 0 || sum <= memory) return {};
  return fail(Errc::kTooLarge, "buffers: together they have {} bytes; the device's memory has {}", sum.count(),
              memory.count());
}

// ---- kernels

using EntryPoints = std::map<std::string_view, const KernelSignature*>;

// The first names of a module, for the message that one is not among them.
std::string names_of(const EntryPoints& entry_points) {
  constexpr std::size_t kShown = 8;
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, signature] : entry_points) {
    if (++count > kShown) return names + fmt::format(" and {} more", entry_points.size() - kShown);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return names.empty() ? "none" : names;
}

std::string text_of(const Dim3& dim) {
  return fmt::format("[{}, {}, {}]", dim[0], dim[1], dim[2]);
}

class KernelChecker {
 public:
  KernelChecker(const KernelTask& task, const std::vector<std::vector<KernelSignature>>& signatures,
                const DeviceLimits& limits)
      : task_(task), limits_(limits), modules_(signatures.size()) {
    for (std::size_t module = 0; module < signatures.size(); ++module) {
      for (const KernelSignature& entry : signatures[module]) modules_[module].emplace(entry.name, &entry);
    }
  }

  // All kernels in order; then that each output has a writer.
  Status check() {
    std::vector<bool> written(task_.buffers.size());
    for (std::size_t i = 0; i < task_.kernels.size(); ++i) {
      const KernelLaunch& kernel = task_.kernels[i];
      const Status status = check_kernel(kernel);
      if (!status) {
        return fail(
            Error{status.error().code,
                  fmt::format("kernels[{}] ({}): {}", i, std::string_view(kernel.kernel).substr(0, kMaxTaskNameLength),
                              status.error().message)});
      }
      for_each_buffer_argument(kernel, [&](const BufferArgument& argument) {
        if (access_of(argument, task_.buffers[argument.buffer].role).writes) written[argument.buffer] = true;
      });
    }
    return check_outputs(written);
  }

 private:
  Status check_kernel(const KernelLaunch& kernel) const {
    if (kernel.module >= modules_.size()) {
      return fail(Errc::kInvalidArgument, "module is {}; the task has {} modules", kernel.module, modules_.size());
    }
    const EntryPoints& entry_points = modules_[kernel.module];
    const auto entry = entry_points.find(kernel.kernel);
    if (entry == entry_points.end()) {
      return fail(Errc::kInvalidArgument, "module '{}' has no kernel of that name; it has {}",
                  task_.modules[kernel.module].name, names_of(entry_points));
    }
    if (Status status = check_dimensions("grid", kernel.grid, limits_.max_grid); !status) return status;
    if (Status status = check_dimensions("block", kernel.block, limits_.max_block); !status) return status;
    if (Status status = check_threads(kernel, *entry->second); !status) return status;
    if (Status status = check_shared(kernel, *entry->second); !status) return status;
    return check_arguments(kernel.arguments, entry->second->parameters);
  }

  static Status check_dimensions(std::string_view field, const Dim3& value, const Dim3& most) {
    for (std::size_t axis = 0; axis < value.size(); ++axis) {
      if (value[axis] >= 1 && value[axis] <= most[axis]) continue;
      return fail(Errc::kInvalidArgument, "{}.{} is {}; it must be between 1 and {}", field, kAxes[axis], value[axis],
                  most[axis]);
    }
    return {};
  }

  // REQUIRES: the block's dimensions are within the device's.
  Status check_threads(const KernelLaunch& kernel, const KernelSignature& entry) const {
    const std::uint64_t threads = std::uint64_t{kernel.block[0]} * kernel.block[1] * kernel.block[2];
    if (threads > limits_.max_threads_per_block) {
      return fail(Errc::kInvalidArgument, "block has {} threads; the device's limit is {}", threads,
                  limits_.max_threads_per_block);
    }
    if (entry.max_threads != 0 && threads > entry.max_threads) {
      return fail(Errc::kInvalidArgument, "block has {} threads; the kernel was compiled for at most {}", threads,
                  entry.max_threads);
    }
    const Dim3& required = entry.required_threads;
    if (required == Dim3{0, 0, 0} || kernel.block == required) return {};
    return fail(Errc::kInvalidArgument, "block is {}; the kernel was compiled for exactly {}", text_of(kernel.block),
                text_of(required));
  }

  Status check_shared(const KernelLaunch& kernel, const KernelSignature& entry) const {
    const std::uint64_t most = limits_.max_shared_bytes;
    if (entry.static_shared_bytes <= most && kernel.shared_bytes <= most - entry.static_shared_bytes) return {};
    return fail(Errc::kInvalidArgument, "shared_bytes is {}; with the kernel's own {} bytes it passes the device's {}",
                kernel.shared_bytes, entry.static_shared_bytes, most);
  }

  Status check_arguments(const std::vector<KernelArgument>& arguments,
                         const std::vector<KernelParameter>& parameters) const {
    if (arguments.size() > kMaxKernelArguments) {
      return fail(Errc::kTooLarge, "{} arguments; a kernel has at most {}", arguments.size(), kMaxKernelArguments);
    }
    if (arguments.size() != parameters.size()) {
      return fail(Errc::kInvalidArgument, "{} arguments; the kernel has {} parameters", arguments.size(),
                  parameters.size());
    }
    std::size_t sum = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string where = fmt::format("arguments[{}]", i);
      const auto* buffer = std::get_if<BufferArgument>(&arguments[i]);
      Status status = buffer != nullptr
                          ? check_address(where, *buffer, parameters[i].bytes)
                          : check_literal(where, std::get<LiteralArgument>(arguments[i]), parameters[i].bytes);
      if (!status) return status;
      sum += parameters[i].bytes;
    }
    if (sum <= kMaxLiteralBytes) return {};
    return fail(Errc::kTooLarge, "its arguments have {} bytes; they may have at most {}", sum, kMaxLiteralBytes);
  }

  Status check_address(const std::string& where, const BufferArgument& argument, std::size_t parameter_bytes) const {
    if (parameter_bytes != kAddressBytes) {
      return fail(Errc::kInvalidArgument, "{} is a buffer, an address of {} bytes; the kernel's parameter has {}",
                  where, kAddressBytes, parameter_bytes);
    }
    return check_buffer(where, argument);
  }

  Status check_literal(const std::string& where, const LiteralArgument& literal, std::size_t parameter_bytes) const {
    if (literal.bytes.size() > kMaxLiteralBytes) {
      return fail(Errc::kTooLarge, "{} has {} bytes; a literal has at most {}", where, literal.bytes.size(),
                  kMaxLiteralBytes);
    }
    if (literal.bytes.size() != parameter_bytes) {
      return fail(Errc::kInvalidArgument, "{} has {} bytes; the kernel's parameter has {}", where, literal.bytes.size(),
                  parameter_bytes);
    }
    std::vector<std::uint64_t> places;
    for (std::size_t i = 0; i < literal.relocations.size(); ++i) {
      const LiteralArgument::Relocation& relocation = literal.relocations[i];
      const std::string place = fmt::format("{}.relocations[{}]", where, i);
      if (std::uint64_t{relocation.at} + kAddressBytes > literal.bytes.size()) {
        return fail(Errc::kInvalidArgument, "{}: at is {}; an address has {} bytes, the literal {}", place,
                    relocation.at, kAddressBytes, literal.bytes.size());
      }
      if (Status status = check_buffer(place, relocation.target); !status) return status;
      places.push_back(relocation.at);
    }
    return check_apart(where, std::move(places));
  }

  static Status check_apart(const std::string& where, std::vector<std::uint64_t> places) {
    std::sort(places.begin(), places.end());
    const auto close = std::adjacent_find(places.begin(), places.end(),
                                          [](std::uint64_t a, std::uint64_t b) { return b - a < kAddressBytes; });
    if (close == places.end()) return {};
    return fail(Errc::kInvalidArgument, "{}: relocations at {} and {} overlap; each has {} bytes", where, *close,
                *(close + 1), kAddressBytes);
  }

  Status check_buffer(const std::string& where, const BufferArgument& argument) const {
    if (argument.buffer >= task_.buffers.size()) {
      return fail(Errc::kInvalidArgument, "{}: buffer is {}; the task has {} buffers", where, argument.buffer,
                  task_.buffers.size());
    }
    const BufferSpec& buffer = task_.buffers[argument.buffer];
    if (argument.offset >= static_cast<std::uint64_t>(buffer.bytes.count())) {
      return fail(Errc::kInvalidArgument, "{}: offset is {}; buffer '{}' has {} bytes", where, argument.offset,
                  buffer.name, buffer.bytes.count());
    }
    if (may_be_written(buffer.role) || !access_of(argument, buffer.role).writes) return {};
    return fail(Errc::kInvalidArgument, "{}: access is to write, but buffer '{}' is {}; objects do not change", where,
                buffer.name, buffer_role_name(buffer.role));
  }

  Status check_outputs(const std::vector<bool>& written) const {
    for (std::size_t i = 0; i < task_.buffers.size(); ++i) {
      const BufferSpec& buffer = task_.buffers[i];
      if (buffer.role != BufferRole::kOutput || buffer.zeroed || written[i]) continue;
      return fail(Errc::kInvalidArgument,
                  "buffers[{}] ({}): it is an output, but no kernel may write it; pass it to one, or set zeroed", i,
                  buffer.name);
    }
    return {};
  }

  const KernelTask& task_;
  const DeviceLimits& limits_;
  std::vector<EntryPoints> modules_;
};

}  // namespace

Status validate_task(const KernelTask& task, const std::vector<std::vector<KernelSignature>>& signatures,
                     const DeviceLimits& limits) {
  FL_CHECK(signatures.size() == task.modules.size(), "signatures={} modules={}", signatures.size(),
           task.modules.size());
  if (task.iterations < 1 || task.iterations > kMaxTaskIterations) {
    return fail(Errc::kInvalidArgument, "iterations is {}; it must be between 1 and {}", task.iterations,
                kMaxTaskIterations);
  }
  if (Status status = validate_count("kernels", task.kernels.size(), 1, kMaxTaskKernels); !status) return status;
  if (Status status = validate_modules(task.modules); !status) return status;
  if (Status status = validate_buffers(task.buffers, limits.memory); !status) return status;
  return KernelChecker(task, signatures, limits).check();
}

}  // namespace fairlead
