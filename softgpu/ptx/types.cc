#include "softgpu/ptx/types.h"

#include <array>
#include <utility>

namespace softgpu::ptx {
namespace {

constexpr std::array<std::pair<std::string_view, Type>, 20> kTypeNames{{
    {"pred", Type::kPred}, {"b8", Type::kB8},   {"u8", Type::kU8},   {"s8", Type::kS8},       {"b16", Type::kB16},
    {"u16", Type::kU16},   {"s16", Type::kS16}, {"f16", Type::kF16}, {"bf16", Type::kBf16},   {"b32", Type::kB32},
    {"u32", Type::kU32},   {"s32", Type::kS32}, {"f32", Type::kF32}, {"f16x2", Type::kF16x2}, {"bf16x2", Type::kBf16x2},
    {"b64", Type::kB64},   {"u64", Type::kU64}, {"s64", Type::kS64}, {"f64", Type::kF64},     {"b128", Type::kB128},
}};

constexpr std::array<std::pair<std::string_view, Space>, 9> kSpaceNames{{
    {"global", Space::kGlobal},
    {"const", Space::kConst},
    {"shared", Space::kShared},
    {"shared::cta", Space::kShared},
    {"shared::cluster", Space::kShared},  // every block is a cluster of its own
    {"local", Space::kLocal},
    {"param", Space::kParam},
    {"param::entry", Space::kParam},
    {"param::func", Space::kParam},
}};

}  // namespace

std::optional<Type> type_from_name(std::string_view name) {
  for (const auto& [text, type] : kTypeNames) {
    if (text == name) return type;
  }
  return std::nullopt;
}

std::optional<Space> space_from_name(std::string_view name) {
  for (const auto& [text, space] : kSpaceNames) {
    if (text == name) return space;
  }
  return std::nullopt;
}

std::string_view type_name(Type type) {
  for (const auto& [text, named] : kTypeNames) {
    if (named == type) return text;
  }
  return "none";
}

}  // namespace softgpu::ptx
