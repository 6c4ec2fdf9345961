// The binary form. What a value consists of is written down once, in fields(), and read by two archives: Writer appends
// it, Reader takes it from the input and checks it. Integers and enumerators have the width of their type, a bool is a
// byte of 0 or 1, a string its length and bytes, a list its count and elements, a variant its index and alternative.
//
//   {.buffer = 3, .offset = 256, .access = kRead}   03 00 00 00  00 01 00 00 00 00 00 00  01
//
// There is one encoding of each value: lengths are refused unless they are as short as possible, and so are bytes behind
// the end. So two equal tasks have equal digests.
#include "wire/kernel_task_codec.h"

#include <bit>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

#include "model/function.h"

namespace fairlead::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "integers are copied as they lie in memory");

constexpr std::string_view kMagic = "FLKT";
constexpr char kVersion = 1;
enum class Kind : char { kTask = 1, kCall = 2, kAnswer = 3, kRequest = 4 };
constexpr std::size_t kHeaderBytes = kMagic.size() + 2;
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kMaxRelocations = kMaxLiteralBytes / sizeof(std::uint64_t);

// ---- archives

class Writer {
 public:
  static constexpr bool kReads = false;

  explicit Writer(Kind kind) : out_(kMagic) {
    out_.push_back(kVersion);
    out_.push_back(static_cast<char>(kind));
  }

  template <std::integral T>
  void number(std::string_view, const T& value, std::uint64_t = 0, std::uint64_t = 0) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename E>
  void choice(std::string_view, const E& value, E) {
    out_.push_back(static_cast<char>(value));
  }
  void text(std::string_view, const std::string& value, std::size_t) {
    length(value.size());
    out_ += value;
  }
  template <typename T, typename Element>
  void list(std::string_view, const std::vector<T>& values, std::size_t, Element element) {
    length(values.size());
    for (const T& value : values) element(*this, value);
  }

  std::string take() { return std::move(out_); }

 private:
  void length(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }

  std::string out_;
};

// After the first error everything reads as nothing; status() has it.
class Reader {
 public:
  static constexpr bool kReads = true;

  explicit Reader(std::string_view input) : input_(input) {}

  void header(Kind kind) {
    if (!is_binary(input_)) return refuse("", "does not begin with '{}' and a version", kMagic);
    if (input_[4] != kVersion) return refuse("", "version is {}, it must be {}", int{input_[4]}, int{kVersion});
    if (input_[5] != static_cast<char>(kind)) {
      return refuse("", "kind is {}, it must be {}", int{input_[5]}, static_cast<int>(kind));
    }
    at_ = kHeaderBytes;
  }

  template <std::integral T>
  void number(std::string_view name, T& value, std::uint64_t least = 0,
              std::uint64_t most = std::numeric_limits<std::make_unsigned_t<T>>::max()) {
    if (!take(name, sizeof value)) return;
    std::memcpy(&value, input_.data() + at_ - sizeof value, sizeof value);
    // A negative number is far above any bound.
    if (const auto unsigned_value = static_cast<std::make_unsigned_t<T>>(value);
        unsigned_value < least || unsigned_value > most) {
      refuse(name, "is {}, it must be between {} and {}", value, least, most);
    }
  }
  template <typename E>
  void choice(std::string_view name, E& value, E last) {
    std::uint8_t byte = 0;
    number(name, byte, 0, static_cast<std::uint64_t>(last));
    if (status_) value = static_cast<E>(byte);
  }
  void text(std::string_view name, std::string& value, std::size_t most) {
    const std::uint64_t size = length(name, "bytes", most);
    if (take(name, size)) value.assign(input_.substr(at_ - size, size));
  }
  template <typename T, typename Element>
  void list(std::string_view name, std::vector<T>& values, std::size_t most, Element element) {
    const std::uint64_t count = length(name, "elements", most);
    path_.push_back({name, 0});
    for (std::uint64_t i = 0; status_ && i < count; ++i) {
      path_.back().index = i;
      element(*this, values.emplace_back());
    }
    path_.pop_back();
  }

  template <typename... Args>
  void refuse(std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
    if (!status_) return;
    std::string where;
    for (const Step& step : path_) where += fmt::format("{}[{}].", step.list, step.index);
    where += name;
    status_ = fail(Errc::kCorrupt, "kernel task, byte {}: {}{}{}", at_, where, where.empty() ? "" : " ",
                   fmt::format(format, std::forward<Args>(args)...));
  }
  Status done() {
    if (at_ != input_.size()) refuse("", "{} bytes follow the end", input_.size() - at_);
    return status_;
  }

 private:
  struct Step {
    std::string_view list;
    std::size_t index;
  };

  // Advances over `bytes`, if there are so many.
  bool take(std::string_view name, std::uint64_t bytes) {
    if (status_ && bytes > input_.size() - at_) {
      refuse(name, "needs {} bytes, {} are left", bytes, input_.size() - at_);
    }
    if (status_) at_ += bytes;
    return status_.has_value();
  }

  // Unsigned LEB128: seven bits a byte, the lowest first. An element has at least one byte, so a count that passes what is
  // left is refused before anything is made for it.
  std::uint64_t length(std::string_view name, std::string_view unit, std::size_t most) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; take(name, 1); shift += 7) {
      const auto byte = static_cast<unsigned char>(input_[at_ - 1]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte == 0 && shift != 0) refuse(name, "has a count that is longer than it need be");
      if (value > most) refuse(name, "has {} {} or more, at most {} are possible", value, unit, most);
      if (byte < 0x80) break;
      if (shift == 56) refuse(name, "has a count of more than 63 bits");
    }
    if (value > input_.size() - at_) refuse(name, "has {} {}, but {} bytes are left", value, unit, input_.size() - at_);
    return status_ ? value : 0;
  }

  std::string_view input_;
  std::size_t at_ = 0;
  std::vector<Step> path_;
  Status status_;
};

// ---- what values consist of

// T is U, or U const.
template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

// Bytes and Duration count in 64 signed bits.
constexpr std::uint64_t kMaxPhaseNs = std::uint64_t{1} << 50;  // 13 days

template <typename Archive, Is<Bytes> T>
void size_field(Archive& archive, std::string_view name, T& value) {
  std::int64_t count = value.count();
  archive.number(name, count, 0, static_cast<std::uint64_t>(kMaxObjectBytes.count()));
  if constexpr (Archive::kReads) value = Bytes(count);
}

template <typename Archive, Is<Duration> T>
void time_field(Archive& archive, std::string_view name, T& value) {
  std::int64_t count = value.count();
  archive.number(name, count, 0, kMaxPhaseNs);
  if constexpr (Archive::kReads) value = Duration(count);
}

template <typename Archive>
void flag_field(Archive& archive, std::string_view name,
                std::conditional_t<Archive::kReads, bool&, const bool&> value) {
  auto byte = static_cast<std::uint8_t>(value);
  archive.number(name, byte, 0, 1);
  if constexpr (Archive::kReads) value = byte != 0;
}

template <typename Archive>
void dim_field(Archive& archive, std::string_view name, std::conditional_t<Archive::kReads, Dim3&, const Dim3&> value) {
  for (auto& axis : value) archive.number(name, axis);
}

template <typename Archive, typename T>
void elements(Archive& archive, std::string_view name, T& values, std::size_t most) {
  archive.list(name, values, most, [](Archive& inner, auto& value) { fields(inner, value); });
}

template <typename Archive, Is<KernelModule> T>
void fields(Archive& archive, T& module) {
  archive.text("name", module.name, kMaxTaskNameLength);
  archive.text("sha256", module.sha256, kDigestBytes);
}

template <typename Archive, Is<BufferSpec> T>
void fields(Archive& archive, T& buffer) {
  archive.text("name", buffer.name, kMaxTaskNameLength);
  size_field(archive, "bytes", buffer.bytes);
  archive.choice("role", buffer.role, BufferRole::kTemporary);
  archive.choice("type", buffer.type, ElementType::kC128);
  archive.list("shape", buffer.shape, kMaxShapeDimensions,
               [](Archive& inner, auto& dimension) { inner.number("", dimension); });
  archive.text("constant", buffer.constant, kMaxObjectKeyLength);
  flag_field(archive, "zeroed", buffer.zeroed);
}

template <typename Archive, Is<BufferArgument> T>
void fields(Archive& archive, T& argument) {
  archive.number("buffer", argument.buffer, 0, kMaxTaskBuffers - 1);
  archive.number("offset", argument.offset);
  archive.choice("access", argument.access, BufferArgument::Access::kReadWrite);
}

template <typename Archive, Is<LiteralArgument::Relocation> T>
void fields(Archive& archive, T& relocation) {
  archive.number("at", relocation.at);
  fields(archive, relocation.target);
}

template <typename Archive, Is<LiteralArgument> T>
void fields(Archive& archive, T& literal) {
  archive.text("bytes", literal.bytes, kMaxLiteralBytes);
  elements(archive, "relocations", literal.relocations, kMaxRelocations);
}

template <typename Archive, Is<KernelArgument> T>
void fields(Archive& archive, T& argument) {
  auto index = static_cast<std::uint8_t>(argument.index());
  archive.number("alternative", index, 0, std::variant_size_v<KernelArgument> - 1);
  if constexpr (Archive::kReads) {
    if (index == 1) argument = BufferArgument{};
  }
  std::visit([&archive](auto& alternative) { fields(archive, alternative); }, argument);
}

template <typename Archive, Is<KernelLaunch> T>
void fields(Archive& archive, T& kernel) {
  archive.number("module", kernel.module, 0, kMaxTaskModules - 1);
  archive.text("kernel", kernel.kernel, kMaxKernelNameLength);
  dim_field(archive, "grid", kernel.grid);
  dim_field(archive, "block", kernel.block);
  archive.number("shared_bytes", kernel.shared_bytes);
  elements(archive, "arguments", kernel.arguments, kMaxKernelArguments);
}

template <typename Archive, Is<KernelTask> T>
void fields(Archive& archive, T& task) {
  elements(archive, "modules", task.modules, kMaxTaskModules);
  elements(archive, "buffers", task.buffers, kMaxTaskBuffers);
  elements(archive, "kernels", task.kernels, kMaxTaskKernels);
  archive.number("iterations", task.iterations);
}

template <typename Archive, typename T>
  requires Is<T, CallBinding> || Is<T, KernelTaskAnswer::Output>
void fields(Archive& archive, T& binding) {
  archive.number("buffer", binding.buffer, 0, kMaxTaskBuffers - 1);
  archive.text("key", binding.key, kMaxObjectKeyLength);
  archive.text("bytes", binding.bytes, kMaxInlineBytes);
}

template <typename Archive, Is<KernelTaskCall> T>
void fields(Archive& archive, T& call) {
  elements(archive, "inputs", call.inputs, kMaxTaskBuffers);
  elements(archive, "outputs", call.outputs, kMaxTaskBuffers);
}

template <typename Archive, Is<KernelTaskAnswer> T>
void fields(Archive& archive, T& answer) {
  elements(archive, "outputs", answer.outputs, kMaxTaskBuffers);
  TaskPhases phases = answer.phases;
  time_field(archive, "phases.kernel_run", phases.kernel_run);
  time_field(archive, "phases.kernel_init", phases.kernel_init);
  time_field(archive, "phases.device_malloc", phases.device_malloc);
  time_field(archive, "phases.device_copy", phases.device_copy);
  time_field(archive, "phases.data_layer", phases.data_layer);
  time_field(archive, "phases.overhead", phases.overhead);
  if constexpr (Archive::kReads) answer.phases = phases;
}

template <typename Archive, Is<KernelTaskRequest::File> T>
void fields(Archive& archive, T& file) {
  archive.text("name", file.name, kMaxTaskNameLength);
  archive.text("bytes", file.bytes, kMaxRequestFileBytes);
}

template <typename Archive, Is<KernelTaskRequest> T>
void fields(Archive& archive, T& request) {
  archive.text("task", request.task, kMaxRequestTaskBytes);
  elements(archive, "files", request.files, kMaxRequestFiles);
  archive.number("timeout_seconds", request.timeout_seconds);
  archive.text("call", request.call, kMaxSyncPayloadBytes);
}

// ---- both ways

template <typename T>
std::string encode_as(Kind kind, const T& value) {
  Writer writer(kind);
  fields(writer, value);
  return writer.take();
}

template <typename T>
Result<T> decode_as(Kind kind, std::string_view bytes) {
  Reader reader(bytes);
  reader.header(kind);
  T value;
  fields(reader, value);
  if (Status status = reader.done(); !status) return fail(status.error());
  return value;
}

}  // namespace

std::string encode(const KernelTask& task) {
  return encode_as(Kind::kTask, task);
}
std::string encode(const KernelTaskCall& call) {
  return encode_as(Kind::kCall, call);
}
std::string encode(const KernelTaskAnswer& answer) {
  return encode_as(Kind::kAnswer, answer);
}
std::string encode(const KernelTaskRequest& request) {
  return encode_as(Kind::kRequest, request);
}

Result<KernelTask> decode_kernel_task(std::string_view bytes) {
  return decode_as<KernelTask>(Kind::kTask, bytes);
}
Result<KernelTaskCall> decode_kernel_task_call(std::string_view bytes) {
  return decode_as<KernelTaskCall>(Kind::kCall, bytes);
}
Result<KernelTaskAnswer> decode_kernel_task_answer(std::string_view bytes) {
  return decode_as<KernelTaskAnswer>(Kind::kAnswer, bytes);
}
Result<KernelTaskRequest> decode_kernel_task_request(std::string_view bytes) {
  return decode_as<KernelTaskRequest>(Kind::kRequest, bytes);
}

bool is_binary(std::string_view bytes) {
  return bytes.size() >= kHeaderBytes && bytes.starts_with(kMagic);
}

}  // namespace fairlead::wire
