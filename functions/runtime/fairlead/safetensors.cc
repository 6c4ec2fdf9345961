#include "fairlead/safetensors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fairlead/error.h"

namespace fairlead {
namespace {

constexpr std::size_t kMaxDimensions = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr std::array<std::pair<std::string_view, unsigned>, 15> kTypes = {{{"BOOL", 1},
                                                                           {"U8", 1},
                                                                           {"I8", 1},
                                                                           {"F8_E4M3", 1},
                                                                           {"F8_E5M2", 1},
                                                                           {"I16", 2},
                                                                           {"U16", 2},
                                                                           {"F16", 2},
                                                                           {"BF16", 2},
                                                                           {"I32", 4},
                                                                           {"U32", 4},
                                                                           {"F32", 4},
                                                                           {"I64", 8},
                                                                           {"U64", 8},
                                                                           {"F64", 8}}};

[[noreturn]] void refuse(const std::string& what) {
  throw Error("Model.Format", "safetensors: " + what);
}

std::string shown(std::string_view name) {
  return "tensor '" + std::string(name.substr(0, 80)) + "'";
}

// What a header may hold: an object of objects of strings and lists of whole numbers. No recursion.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  SafetensorsHeader read() {
    SafetensorsHeader header;
    bool has_metadata = false;
    object([&](std::string name) {
      if (name == "__metadata__") {
        if (std::exchange(has_metadata, true)) refuse("__metadata__ is there twice");
        return object([&](std::string key) { header.metadata[std::move(key)] = string(); });
      }
      const auto [place, is_new] = header.tensors.emplace(std::move(name), SafetensorsHeader::Tensor());
      if (!is_new) refuse(shown(place->first) + " is there twice");
      tensor(place->first, place->second);
    });
    spaces();
    if (at_ != text_.size()) refuse("something follows the header's object");
    return header;
  }

 private:
  void tensor(const std::string& name, SafetensorsHeader::Tensor& tensor) {
    bool has_type = false, has_shape = false, has_offsets = false;
    object([&](const std::string& field) {
      if (field == "dtype" && !std::exchange(has_type, true)) {
        tensor.dtype = string();
      } else if (field == "shape" && !std::exchange(has_shape, true)) {
        tensor.shape = numbers();
      } else if (field == "data_offsets" && !std::exchange(has_offsets, true)) {
        const std::vector<std::uint64_t> offsets = numbers();
        if (offsets.size() != 2) refuse(shown(name) + ": data_offsets must be [begin, end]");
        tensor.begin = offsets[0];
        tensor.end = offsets[1];
      } else {
        refuse(shown(name) + " must have dtype, shape and data_offsets once, and nothing else");
      }
    });
    if (!has_type || !has_shape || !has_offsets) refuse(shown(name) + " lacks dtype, shape or data_offsets");
  }

  template <class Member>
  void object(Member member) {
    expect('{');
    if (take('}')) return;
    do {
      std::string name = string();
      expect(':');
      member(std::move(name));
    } while (take(','));
    expect('}');
  }

  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> list;
    expect('[');
    if (take(']')) return list;
    do {
      if (list.size() == kMaxDimensions) refuse("a list has more than " + std::to_string(kMaxDimensions) + " numbers");
      list.push_back(number());
    } while (take(','));
    expect(']');
    return list;
  }

  std::uint64_t number() {
    spaces();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
      if (value > kMostBytes) refuse("a number is above 2^62");
    }
    if (at_ == begin) refuse("expected a whole number at byte " + std::to_string(begin));
    return value;
  }

  std::string string() {
    expect('"');
    std::string value;
    while (true) {
      if (at_ == text_.size()) refuse("a string has no end");
      const char c = text_[at_++];
      if (c == '"') return value;
      if (static_cast<unsigned char>(c) < 0x20) refuse("a control character within a string");
      value += c == '\\' ? escaped() : std::string(1, c);
    }
  }

  std::string escaped() {
    if (at_ == text_.size()) refuse("a string has no end");
    const char c = text_[at_++];
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (const std::size_t known = kFrom.find(c); known != std::string_view::npos) return std::string(1, kTo[known]);
    if (c != 'u' || text_.size() - at_ < 4) refuse("an escape that JSON does not know");
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const char digit = text_[at_++];
      const std::size_t value = std::string_view("0123456789abcdef").find(static_cast<char>(digit | 0x20));
      if (value == std::string_view::npos) refuse("an escape that JSON does not know");
      code = code * 16 + static_cast<unsigned>(value);
    }
    // Names with others are rare enough to be told apart by their escape.
    return code < 0x80 ? std::string(1, static_cast<char>(code)) : "\\u" + std::string(text_.substr(at_ - 4, 4));
  }

  void spaces() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(std::string("expected '") + c + "' at byte " + std::to_string(at_));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// What its type and shape need.
std::uint64_t bytes_of(const std::string& name, const SafetensorsHeader::Tensor& tensor) {
  const auto type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& known) { return known.first == tensor.dtype; });
  if (type == kTypes.end()) refuse(shown(name) + ": dtype is '" + tensor.dtype.substr(0, 40) + "', which is not known");
  std::uint64_t bytes = type->second;
  for (const std::uint64_t size : tensor.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > kMostBytes)
      refuse(shown(name) + ": its shape has above 2^62 bytes");
  }
  return bytes;
}

}  // namespace

std::uint64_t safetensors_header_bytes(std::string_view first8, std::uint64_t file_bytes) {
  if (first8.size() != 8 || file_bytes < 8)
    refuse("the file has " + std::to_string(file_bytes) + " bytes, it must have 8");
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(first8[static_cast<std::size_t>(i)]);
  const std::uint64_t most = std::min(kMaxSafetensorsHeader, file_bytes - 8);
  if (length < 2 || length > most) {
    refuse("the header has " + std::to_string(length) + " bytes, it must have 2 to " + std::to_string(most));
  }
  return length;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t file_bytes) {
  SafetensorsHeader header = Reader(json).read();
  header.data_begin = 8 + json.size();
  if (file_bytes < header.data_begin) refuse("the file ends within its header");
  header.data_bytes = file_bytes - header.data_begin;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const auto& [name, tensor] : header.tensors) {
    const std::uint64_t bytes = bytes_of(name, tensor);
    if (tensor.end < tensor.begin || tensor.end - tensor.begin != bytes) {
      refuse(shown(name) + ": its data has bytes " + std::to_string(tensor.begin) + " to " +
             std::to_string(tensor.end) + ", its shape needs " + std::to_string(bytes));
    }
    parts.emplace_back(tensor.begin, tensor.end);
  }
  std::sort(parts.begin(), parts.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end] : parts) {
    if (begin != at)
      refuse("a tensor's data begins at " + std::to_string(begin) + ", the one before ends at " + std::to_string(at));
    at = end;
  }
  if (at != header.data_bytes) {
    refuse("the tensors have " + std::to_string(at) + " bytes, the file has " + std::to_string(header.data_bytes) +
           " of data");
  }
  return header;
}

}  // namespace fairlead
