#include "model/trace_context.h"

#include <cstddef>

namespace fairlead {
namespace {

constexpr std::size_t kParentBytes = 55;  // of version 00
constexpr std::size_t kMostAmznBytes = 1024;

// Lower case alone: W3C forbids the other.
std::optional<std::uint64_t> from_hex(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char c : digits) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
    number = number << 4 | static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return number;
}

// 1-5759e988-bd862e3fe1be46a994272793
bool read_root(std::string_view root, TraceContext& context) {
  if (root.size() != 35 || !root.starts_with("1-") || root[10] != '-') return false;
  const std::string digits = std::string(root.substr(2, 8)).append(root.substr(11));
  const auto high = from_hex(std::string_view(digits).substr(0, 16));
  const auto low = from_hex(std::string_view(digits).substr(16));
  if (!high || !low || (*high | *low) == 0) return false;
  context.trace_high = *high;
  context.trace_low = *low;
  return true;
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < kParentBytes || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  if (!from_hex(version) || version == "ff") return std::nullopt;
  if (text.size() > kParentBytes && (version == "00" || text[kParentBytes] != '-')) return std::nullopt;
  const auto high = from_hex(text.substr(3, 16)), low = from_hex(text.substr(19, 16));
  const auto span = from_hex(text.substr(36, 16)), flags = from_hex(text.substr(53, 2));
  if (!high || !low || !span || !flags || (*high | *low) == 0 || *span == 0) return std::nullopt;
  return TraceContext{.trace_high = *high, .trace_low = *low, .span = *span, .is_sampled = (*flags & 1) != 0};
}

std::optional<TraceContext> parse_amzn_trace(std::string_view text) {
  TraceContext context;
  bool has_root = false;
  if (text.size() > kMostAmznBytes) return std::nullopt;
  while (!text.empty()) {
    std::string_view field = text.substr(0, text.find(';'));
    text.remove_prefix(field.size() < text.size() ? field.size() + 1 : text.size());
    while (field.starts_with(' ')) field.remove_prefix(1);
    if (field.starts_with("Root=")) has_root = read_root(field.substr(5), context);
    if (field == "Sampled=1") context.is_sampled = true;
    if (field == "Sampled=0") context.is_sampled = false;
    if (field.starts_with("Parent=") && field.size() == 23) context.span = from_hex(field.substr(7)).value_or(0);
  }
  if (!has_root) return std::nullopt;
  return context;
}

std::string to_traceparent(const TraceContext& context) {
  std::string text = "00-";
  text.append(to_hex(context.trace_high)).append(to_hex(context.trace_low)).append("-").append(to_hex(context.span));
  return text.append(context.is_sampled.value_or(false) ? "-01" : "-00");
}

std::string to_amzn_trace(const TraceContext& context) {
  const std::string high = to_hex(context.trace_high);
  std::string text = "Root=1-";
  text.append(high, 0, 8).append("-").append(high, 8).append(to_hex(context.trace_low));
  if (context.span != 0) text.append(";Parent=").append(to_hex(context.span));
  if (context.is_sampled) text.append(*context.is_sampled ? ";Sampled=1" : ";Sampled=0");
  return text;
}

std::string to_hex(std::uint64_t number) {
  std::string text;
  append_hex(text, number);
  return text;
}

void append_hex(std::string& out, std::uint64_t number) {
  char digits[16];
  for (std::size_t i = 16; i-- > 0; number >>= 4) digits[i] = "0123456789abcdef"[number & 15];
  out.append(digits, sizeof digits);
}

}  // namespace fairlead
