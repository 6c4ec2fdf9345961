#include "fairlead/ktask.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "fairlead/error.h"
#include "fairlead/json.h"

namespace fairlead::ktask {
namespace {

struct TypeFacts {
  const char* name;
  std::uint64_t bytes;
};
// In the order of Type.
constexpr TypeFacts kTypes[] = {{"bytes", 1}, {"s8", 1},  {"u8", 1},  {"s16", 2}, {"u16", 2},
                                {"s32", 4},   {"u32", 4}, {"s64", 8}, {"u64", 8}, {"f16", 2},
                                {"bf16", 2},  {"f32", 4}, {"f64", 8}, {"c64", 8}, {"c128", 16}};
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;  // of a buffer: 1 TiB
constexpr std::uint32_t kMostIterations = 1'000'000;

[[noreturn]] void refuse(const std::string& what) {
  throw Error("KernelTask.Invalid", what);
}

const TypeFacts& facts(Type type) {
  return kTypes[static_cast<std::size_t>(type)];
}

std::uint64_t size_of(const std::string& name, Type type, const Shape& shape) {
  std::uint64_t bytes = facts(type).bytes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::uint64_t extent = shape[i];
    if (extent == 0) refuse("buffer '" + name + "': shape[" + std::to_string(i) + "] is 0, it must be 1 or more");
    if (extent > kMostBytes / bytes) refuse("buffer '" + name + "' has more than 1 TiB");
    bytes *= extent;
  }
  return bytes;
}

template <class Number>
std::string join(const Number& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

template <class Value>
std::string typed(const char* type, Value value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;  // reads back to the same number
  return std::string("{\"") + type + "\":" + std::string(digits, end) + "}";
}

// JSON has neither NaN nor infinity.
template <class Value>
std::string real(const char* type, Value value) {
  if (std::isfinite(value)) return typed(type, value);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  return "{\"bytes\":\"" + base64({raw, sizeof raw}) + "\"}";
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw Error("KernelTask.Io", path.string() + " cannot be written: " + std::strerror(errno));
}

}  // namespace

// ---- arguments

Argument::Argument(std::int32_t value) : json_(typed("s32", value)) {}
Argument::Argument(std::uint32_t value) : json_(typed("u32", value)) {}
Argument::Argument(std::int64_t value) : json_(typed("s64", value)) {}
Argument::Argument(std::uint64_t value) : json_(typed("u64", value)) {}
Argument::Argument(float value) : json_(real("f32", value)) {}
Argument::Argument(double value) : json_(real("f64", value)) {}
Argument::Argument(Buffer buffer) : Argument(buffer, nullptr, 0) {}
Argument::Argument(Buffer buffer, const char* access, std::uint64_t offset)
    : task_(buffer.task), buffer_(buffer.index), access_(access), offset_(offset) {}

Argument Argument::bytes(std::string_view value) {
  return Argument("{\"bytes\":\"" + base64(value) + "\"}");
}

Argument read(Buffer buffer, std::uint64_t offset) {
  return Argument(buffer, "read", offset);
}

Argument write(Buffer buffer, std::uint64_t offset) {
  return Argument(buffer, "write", offset);
}

// ---- buffers

Buffer Task::add(std::string name, const char* role, Type type, const Shape& shape, const std::string& more) {
  const bool known = std::any_of(buffers_.begin(), buffers_.end(), [&](const Named& b) { return b.name == name; });
  if (known) refuse("buffer '" + name + "' is there already: every buffer has a name of its own");
  size_of(name, type, shape);
  std::string json = "{\"role\":\"" + std::string(role) + "\",\"type\":\"" + facts(type).name +
                     "\",\"shape\":" + join(shape) + more + "}";
  buffers_.push_back({std::move(name), std::move(json)});
  return {this, buffers_.size() - 1};
}

Buffer Task::input(std::string name, Type type, Shape shape) {
  return add(std::move(name), "input", type, shape, "");
}

Buffer Task::inout(std::string name, Type type, Shape shape) {
  return add(std::move(name), "inout", type, shape, "");
}

Buffer Task::output(std::string name, Type type, Shape shape, bool zeroed) {
  return add(std::move(name), "output", type, shape, zeroed ? ",\"zeroed\":true" : "");
}

Buffer Task::temporary(Type type, Shape shape, bool zeroed) {
  return add("temporary " + std::to_string(buffers_.size()), "temporary", type, shape,
             zeroed ? ",\"zeroed\":true" : "");
}

Buffer Task::constant(std::string name, Type type, Shape shape, std::string key) {
  return add(std::move(name), "constant", type, shape, ",\"key\":" + json_quote(key));
}

Buffer Task::constant_of(std::string name, Type type, Shape shape, std::string bytes) {
  if (const std::uint64_t size = size_of(name, type, shape); size != bytes.size()) {
    refuse("constant '" + name + "' has " + std::to_string(bytes.size()) + " bytes; its shape needs " +
           std::to_string(size));
  }
  const std::string file = "constant" + std::to_string(buffers_.size()) + ".bin";
  files_.push_back({file, std::move(bytes)});
  return add(std::move(name), "constant", type, shape, ",\"file\":" + json_quote(file));
}

// ---- modules and launches

Module Task::module(std::string file, std::string image) {
  if (file.empty() || file.find('/') != std::string::npos || file == "task.json" || file[0] == '.') {
    refuse("module '" + file + "' must be the name of a file beside task.json");
  }
  const bool known = std::any_of(files_.begin(), files_.end(), [&](const File& f) { return f.name == file; });
  if (known) refuse("file '" + file + "' is there already");
  modules_.push_back(file);
  files_.push_back({std::move(file), std::move(image)});
  return {this, modules_.size() - 1};
}

Module Task::library(std::string name) {
  modules_.push_back("fairlead:" + name);
  return {this, modules_.size() - 1};
}

std::string Task::argument(const std::string& kernel, std::size_t index, const Argument& argument) const {
  if (!argument.json_.empty()) return argument.json_;
  if (argument.task_ != this) {
    refuse("kernel '" + kernel + "': arguments[" + std::to_string(index) + "] is a buffer of another task");
  }
  std::string json = "{\"buffer\":" + json_quote(buffers_[argument.buffer_].name);
  if (argument.offset_ != 0) json += ",\"offset\":" + std::to_string(argument.offset_);
  if (argument.access_ != nullptr) json += std::string(",\"access\":\"") + argument.access_ + "\"";
  return json + "}";
}

void Task::launch(Module module, std::string kernel, const Geometry& geometry,
                  std::initializer_list<Argument> arguments) {
  if (module.task != this) refuse("kernel '" + kernel + "': its module is another task's");
  std::string list;
  for (const Argument& one : arguments) {
    const auto index = static_cast<std::size_t>(&one - arguments.begin());
    list += (index == 0 ? "" : ",") + argument(kernel, index, one);
  }
  const auto dimensions = [](Dimensions wanted) {
    for (std::size_t i = 1; i < wanted.size(); ++i) wanted[i] = std::max(wanted[i], 1U);  // {16} leaves them 0
    return join(wanted);
  };
  launches_.push_back("{\"module\":" + json_quote(modules_[module.index]) + ",\"kernel\":" + json_quote(kernel) +
                      ",\"grid\":" + dimensions(geometry.grid) + ",\"block\":" + dimensions(geometry.block) +
                      ",\"shared_bytes\":" + std::to_string(geometry.shared_bytes) + ",\"arguments\":[" + list + "]}");
}

void Task::iterate(std::uint32_t times) {
  if (times == 0 || times > kMostIterations) {
    refuse("iterations is " + std::to_string(times) + ", it must be between 1 and " + std::to_string(kMostIterations));
  }
  iterations_ = times;
}

// ---- saving

std::string Task::json() const {
  if (launches_.empty()) refuse("the task launches no kernel");
  std::string text = "{\n  \"buffers\": {";
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + json_quote(buffers_[i].name) + ": " + buffers_[i].json;
  }
  text += "\n  },\n  \"kernels\": [";
  for (std::size_t i = 0; i < launches_.size(); ++i) text += (i == 0 ? "\n    " : ",\n    ") + launches_[i];
  return text + "\n  ],\n  \"iterations\": " + std::to_string(iterations_) + "\n}\n";
}

void Task::save(const std::string& folder) const {
  const std::string text = json();
  std::filesystem::create_directories(folder);
  for (const File& file : files_) write_file(std::filesystem::path(folder) / file.name, file.bytes);
  write_file(std::filesystem::path(folder) / "task.json", text);  // last: a folder with it is whole
}

}  // namespace fairlead::ktask
