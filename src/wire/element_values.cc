#include "wire/element_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace fairlead::wire {
namespace {

using nlohmann::json;

// ---- floating point of 16 bits

struct Float16Format {
  int exponent_bits;
  int fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << fraction_bits; }
};
constexpr Float16Format kHalf{5, 10};
constexpr Float16Format kBrain{8, 7};

// Numbers below the least normal one have the spacing of its exponent, and the carry of rounding up runs into the exponent
// where it belongs. 1.5: exponent 0, 1536 units of 2^-10; (0 + 15 - 1) << 10 plus 1536 is 0x3e00.
std::optional<std::uint16_t> narrowed(Float16Format format, double value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  if (value == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(value), 1 - format.bias());
  const double units = std::nearbyint(std::ldexp(std::abs(value), format.fraction_bits - exponent));
  if (exponent > format.bias()) return std::nullopt;
  const std::uint32_t bits = (static_cast<std::uint32_t>(exponent + format.bias() - 1) << format.fraction_bits) +
                             static_cast<std::uint32_t>(units);
  if (bits >= format.infinity()) return std::nullopt;
  return static_cast<std::uint16_t>(sign | bits);
}

float widened(Float16Format format, std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= format.infinity()) return std::numeric_limits<float>::quiet_NaN();  // or infinite: no number either
  const auto exponent = static_cast<int>(magnitude >> format.fraction_bits);
  const auto fraction = static_cast<int>(magnitude & ((1U << format.fraction_bits) - 1));
  const int units = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  const float value =
      std::ldexp(static_cast<float>(units), std::max(exponent, 1) - format.bias() - format.fraction_bits);
  return (bits & 0x8000U) != 0 ? -value : value;
}

// ---- from JSON

template <typename T>
void append_raw(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
void append_integer(ElementType type, const JsonValue& value, std::string& out) {
  using Limits = std::numeric_limits<T>;
  const json& number = value.json();
  const bool fits = number.is_number_unsigned()
                        ? std::cmp_less_equal(number.get<std::uint64_t>(), Limits::max())
                        : number.is_number_integer() &&
                              std::cmp_greater_equal(number.get<std::int64_t>(), Limits::min()) &&
                              std::cmp_less_equal(number.get<std::int64_t>(), Limits::max());
  if (fits) return append_raw(number.get<T>(), out);
  value.refuse("{}; a {} is a whole number between {} and {}",
               number.is_number() ? fmt::format("is {}", number.dump()) : "is no number", element_type_name(type),
               Limits::min(), Limits::max());
}

// round(number) appends it, or says that the type does not reach that far.
template <typename Round>
void append_real(ElementType type, const JsonValue& value, Round round) {
  if (!value.json().is_number()) {
    return value.refuse("is no number, but {} elements are; give what is not finite as base64",
                        element_type_name(type));
  }
  if (!round(value.json().get<double>())) {
    value.refuse("is {}, beyond the range of {}", value.json().dump(), element_type_name(type));
  }
}

void append_f32(ElementType type, const JsonValue& value, std::string& out) {
  append_real(type, value, [&out](double number) {
    const bool fits = std::abs(number) < 0x1.ffffffp127;  // half a unit above the largest
    if (fits) append_raw(static_cast<float>(number), out);
    return fits;
  });
}
void append_f64(ElementType type, const JsonValue& value, std::string& out) {
  append_real(type, value, [&out](double number) {
    append_raw(number, out);
    return true;
  });
}
void append_16(ElementType type, Float16Format format, const JsonValue& value, std::string& out) {
  append_real(type, value, [&](double number) {
    const auto bits = narrowed(format, number);
    if (bits) append_raw(*bits, out);
    return bits.has_value();
  });
}

template <typename AppendPart>
void append_complex(ElementType type, const JsonValue& value, std::string& out, AppendPart append_part) {
  const json& pair = value.json();
  if (!pair.is_array() || pair.size() != 2) {
    return value.refuse("must be a pair [re, im]; the elements are {}", element_type_name(type));
  }
  append_part(type, value.at(0), out);
  append_part(type, value.at(1), out);
}

bool is_complex(ElementType type) {
  return type == ElementType::kC64 || type == ElementType::kC128;
}

// Nested as the shape is told from flat by what its first element is.
bool is_nested(const BufferSpec& buffer, const json& list) {
  if (buffer.shape.size() < 2 || list.empty() || !list[0].is_array()) return false;
  return !is_complex(buffer.type) || (!list[0].empty() && list[0][0].is_array());
}

bool has_count(const JsonValue& list, std::uint64_t count) {
  if (!list.json().is_array()) {
    list.refuse("must be a list of {}", count);
  } else if (list.json().size() != count) {
    list.refuse("has {} elements; {} are needed", list.json().size(), count);
  }
  return list.ok();
}

void append_nested(const BufferSpec& buffer, std::size_t dimension, const JsonValue& list, std::string& out) {
  if (!has_count(list, buffer.shape[dimension])) return;
  for (std::size_t i = 0; list.ok() && i < list.json().size(); ++i) {
    const JsonValue element = list.at(i);
    if (dimension + 1 == buffer.shape.size()) {
      append_element(buffer.type, element, out);
    } else {
      append_nested(buffer, dimension + 1, element, out);
    }
  }
}

// ---- to JSON

// Writes into a text of a size that is not known before. False once there was no number to write.
class ElementWriter {
 public:
  explicit ElementWriter(const BufferSpec& buffer, std::string_view contents) : buffer_(buffer), contents_(contents) {
    out_.reserve(contents.size() * 4);
  }

  std::optional<std::string> write() {
    const std::uint64_t count = contents_.size() / element_bytes(buffer_.type);
    if (buffer_.shape.empty()) {
      write_list(count, [this] { write_element(); });
    } else {
      write_dimension(0);
    }
    if (!finite_) return std::nullopt;
    return std::move(out_);
  }

 private:
  template <typename WriteOne>
  void write_list(std::uint64_t count, WriteOne write_one) {
    out_ += '[';
    for (std::uint64_t i = 0; finite_ && i < count; ++i) {
      if (i != 0) out_ += ',';
      write_one();
    }
    out_ += ']';
  }
  void write_dimension(std::size_t dimension) {
    const bool is_last = dimension + 1 == buffer_.shape.size();
    write_list(buffer_.shape[dimension], [this, dimension, is_last] {
      if (is_last) {
        write_element();
      } else {
        write_dimension(dimension + 1);
      }
    });
  }

  template <typename T>
  T next() {
    T value;
    std::memcpy(&value, contents_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  template <typename T>
  void write_number(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      finite_ = finite_ && std::isfinite(value);
      if (value == 0 && std::signbit(value)) {  // "-0" is the integer 0
        out_ += "-0.0";
        return;
      }
    }
    char digits[32];
    const auto end = std::to_chars(digits, std::end(digits), value).ptr;
    out_.append(digits, end);
  }
  template <typename T>
  void write_pair() {
    out_ += '[';
    write_number(next<T>());
    out_ += ',';
    write_number(next<T>());
    out_ += ']';
  }

  void write_element() {
    switch (buffer_.type) {
      case ElementType::kS8: return write_number(next<std::int8_t>());
      case ElementType::kBytes:
      case ElementType::kU8: return write_number(next<std::uint8_t>());
      case ElementType::kS16: return write_number(next<std::int16_t>());
      case ElementType::kU16: return write_number(next<std::uint16_t>());
      case ElementType::kS32: return write_number(next<std::int32_t>());
      case ElementType::kU32: return write_number(next<std::uint32_t>());
      case ElementType::kS64: return write_number(next<std::int64_t>());
      case ElementType::kU64: return write_number(next<std::uint64_t>());
      case ElementType::kF16: return write_number(widened(kHalf, next<std::uint16_t>()));
      case ElementType::kBf16: return write_number(widened(kBrain, next<std::uint16_t>()));
      case ElementType::kF32: return write_number(next<float>());
      case ElementType::kF64: return write_number(next<double>());
      case ElementType::kC64: return write_pair<float>();
      case ElementType::kC128: return write_pair<double>();
    }
  }

  const BufferSpec& buffer_;
  std::string_view contents_;
  std::size_t at_ = 0;
  bool finite_ = true;
  std::string out_;
};

}  // namespace

void append_element(ElementType type, const JsonValue& value, std::string& out) {
  switch (type) {
    case ElementType::kS8: return append_integer<std::int8_t>(type, value, out);
    case ElementType::kBytes:
    case ElementType::kU8: return append_integer<std::uint8_t>(type, value, out);
    case ElementType::kS16: return append_integer<std::int16_t>(type, value, out);
    case ElementType::kU16: return append_integer<std::uint16_t>(type, value, out);
    case ElementType::kS32: return append_integer<std::int32_t>(type, value, out);
    case ElementType::kU32: return append_integer<std::uint32_t>(type, value, out);
    case ElementType::kS64: return append_integer<std::int64_t>(type, value, out);
    case ElementType::kU64: return append_integer<std::uint64_t>(type, value, out);
    case ElementType::kF16: return append_16(type, kHalf, value, out);
    case ElementType::kBf16: return append_16(type, kBrain, value, out);
    case ElementType::kF32: return append_f32(type, value, out);
    case ElementType::kF64: return append_f64(type, value, out);
    case ElementType::kC64: return append_complex(type, value, out, append_f32);
    case ElementType::kC128: return append_complex(type, value, out, append_f64);
  }
}

std::string elements_from_json(const BufferSpec& buffer, const JsonValue& list) {
  std::string out;
  if (buffer.type == ElementType::kBytes) {
    list.refuse("are numbers, but buffer '{}' has no type; give its bytes as base64", buffer.name);
    return out;
  }
  if (list.json().is_array() && is_nested(buffer, list.json())) {
    append_nested(buffer, 0, list, out);
    return out;
  }
  if (!has_count(list, static_cast<std::uint64_t>(buffer.bytes.count()) / element_bytes(buffer.type))) return out;
  out.reserve(static_cast<std::size_t>(buffer.bytes.count()));
  for (std::size_t i = 0; list.ok() && i < list.json().size(); ++i) append_element(buffer.type, list.at(i), out);
  return out;
}

std::optional<std::string> elements_to_json(const BufferSpec& buffer, std::string_view contents) {
  if (buffer.type == ElementType::kBytes || !std::cmp_equal(contents.size(), buffer.bytes.count())) return std::nullopt;
  if (!buffer.shape.empty() && shape_bytes(buffer.type, buffer.shape) != buffer.bytes) return std::nullopt;
  return ElementWriter(buffer, contents).write();
}

}  // namespace fairlead::wire
