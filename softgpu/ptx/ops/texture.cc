// tex txq suld sust suq. Handles are looked up in the launch's TextureTable; elements are read as texel.h says. There are no
// mipmaps: .level and .grad read the one level.
#include "softgpu/ptx/budget.h"
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/ops/texel.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Geometry {
  std::string_view name;
  int axes;
  bool has_layers;
};
constexpr Geometry kGeometries[] = {
    {"1d", 1, false}, {"2d", 2, false}, {"3d", 3, false}, {"a1d", 1, true}, {"a2d", 2, true}};

// mode: the geometry, and whether coordinates are integers.
constexpr std::uint16_t kIntegers = 8;

// Looks up the object of lane `lane`, unless it is that of the lane before.
template <bool kIsSurface>
bool find_object(Warp& warp, const Instruction* at, u64 handle, TextureDescription& out) {
  const TextureTable* table = warp.run->launch->textures;
  const bool found =
      table != nullptr && (kIsSurface ? table->find_surface(handle, out) : table->find_texture(handle, out));
  if (!found) raise(warp, at, FaultKind::kIllegalInstruction, "no such texture or surface object");
  return found;
}

// Rows: four results, then the layer if there is one, then a coordinate for each axis.
const Instruction* fetch(Warp& warp, const Instruction* at) {
  constexpr std::ptrdiff_t kPrice = 256;
  spend(warp, kPrice);
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  const Geometry& geometry = kGeometries[at->mode & 7];
  const u64* handles = source<u64>(warp, at->a);
  const std::int32_t* coordinate_rows = rows.data() + 4 + (geometry.has_layers ? 1 : 0);
  TextureDescription texture;
  u64 known = 0;
  bool is_known = false;
  Texel results[kLanes];
  for (u32 rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (!is_known || known != handles[lane]) {
      if (!find_object<false>(warp, at, handles[lane], texture)) return nullptr;
      known = handles[lane];
      is_known = true;
    }
    TexelReader reader(warp, at, texture, lane);
    std::int64_t layer = 0;
    if (geometry.has_layers) {
      const auto layers = static_cast<std::int64_t>(std::max<std::size_t>(texture.depth, 1));
      layer = std::clamp<std::int64_t>(source<std::int32_t>(warp, rows[4])[lane], 0, layers - 1);
    }
    if ((at->mode & kIntegers) != 0) {
      std::int64_t index[3] = {0, 0, layer};
      for (int axis = 0; axis < geometry.axes; ++axis) {
        index[axis] = source<std::int32_t>(warp, coordinate_rows[axis])[lane];
      }
      const bool is_outside =
          geometry.axes == 1 && (index[0] < 0 || index[0] >= static_cast<std::int64_t>(texture.width));
      if (!is_outside) results[lane] = reader.element(index, geometry.axes);
    } else {
      float coordinates[3] = {0, 0, 0};
      for (int axis = 0; axis < geometry.axes; ++axis) {
        coordinates[axis] = source<float>(warp, coordinate_rows[axis])[lane];
      }
      results[lane] = reader.sample(coordinates, geometry.axes, layer);
    }
    if (!reader.ok) return nullptr;
  }
  for (std::size_t channel = 0; channel < 4; ++channel) {
    if (rows[channel] == kNoRow) continue;
    u32* dst = row<u32>(warp, rows[channel]);
    for (u32 rest = warp.mask; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      dst[lane] = results[lane].bits[channel];
    }
  }
  return at + 1;
}

enum class Query : std::uint16_t { kWidth, kHeight, kDepth, kLayers, kNormalised, kLevels, kSamples };
constexpr std::string_view kQueries[] = {
    "width", "height", "depth", "array_size", "normalized_coords", "num_mipmap_levels", "num_samples"};

template <bool kIsSurface>
const Instruction* query(Warp& warp, const Instruction* at) {
  const u64* handles = source<u64>(warp, at->a);
  u32* dst = row<u32>(warp, at->dst);
  for (u32 rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    TextureDescription object;
    if (!find_object<kIsSurface>(warp, at, handles[lane], object)) return nullptr;
    std::size_t value = 1;
    switch (static_cast<Query>(at->mode)) {
      case Query::kWidth: value = object.width; break;
      case Query::kHeight: value = object.height; break;
      case Query::kDepth:
      case Query::kLayers: value = object.depth; break;
      case Query::kNormalised: value = object.is_normalised ? 1 : 0; break;
      default: break;
    }
    dst[lane] = static_cast<u32>(value);
  }
  return at + 1;
}

// ---- decoding

// A handle is a 64-bit value in brackets.
std::int32_t read_handle(Decoder& decoder, ast::Operand operand) {
  if (!operand.memory || operand.offset != 0) decoder.text.refuse("a texture or surface in brackets is missing");
  operand.memory = false;
  return decoder.rows.read(operand, Type::kU64);
}

int take_geometry(Decoder& decoder) {
  for (std::size_t i = 0; i < std::size(kGeometries); ++i) {
    if (decoder.text.take(kGeometries[i].name)) return static_cast<int>(i);
  }
  decoder.text.refuse("the geometry is not supported");
  return -1;
}

void decode_fetch(Decoder& decoder) {
  // The operands behind the coordinates name a level, of which there is only one.
  const bool has_level = decoder.text.take("level"), has_gradients = decoder.text.take("grad");
  const int geometry_index = take_geometry(decoder);
  const Type result = decoder.text.take_type(), coordinate = decoder.text.take_type();
  if (geometry_index < 0) return;
  const Geometry& geometry = kGeometries[geometry_index];
  const bool is_integer = coordinate == Type::kS32;
  if (size_of(result) != 4 || (!is_integer && coordinate != Type::kF32) || !decoder.text.take("v4")) {
    return decoder.text.refuse("this combination of types is not supported");
  }
  const std::size_t count = 3 + (has_level ? 1 : 0) + (has_gradients ? 2 : 0);
  if (!decoder.text.expect_operands(count, count)) return;
  const auto operands = decoder.text.operands();
  const auto results = elements_of(decoder, operands[0]), coordinates = elements_of(decoder, operands[2]);
  const std::size_t needed = static_cast<std::size_t>(geometry.axes) + (geometry.has_layers ? 1 : 0);
  if (results.size() != 4 || coordinates.size() < needed) {
    return decoder.text.refuse("the number of coordinates does not fit", LoadError::Kind::kSyntax);
  }
  const auto handle = read_handle(decoder, operands[1]);
  RowList read, rows;
  for (std::size_t i = 0; i < needed; ++i) read.rows.push_back(decoder.rows.read(coordinates[i], Type::kU32));
  for (const ast::Operand& one : results) {
    rows.rows.push_back(one.kind == ast::Operand::Kind::kSink ? kNoRow : decoder.rows.write(one, Type::kU32));
  }
  rows.rows.insert(rows.rows.end(), read.rows.begin(), read.rows.end());
  const RowList* kept = decoder.writer.keep(std::move(rows));
  Instruction& instruction = decoder.writer.emit_memory(fetch);
  instruction.a = handle;
  instruction.data = kept;
  instruction.mode = static_cast<std::uint16_t>(geometry_index | (is_integer ? kIntegers : 0));
}

template <bool kIsSurface>
void decode_query(Decoder& decoder) {
  std::uint16_t which = 0;
  while (which < std::size(kQueries) && !decoder.text.take(kQueries[which])) ++which;
  decoder.text.take("b32");
  if (which == std::size(kQueries)) return decoder.text.refuse("the query is not supported");
  if (!decoder.text.expect_operands(2, 2)) return;
  const auto handle = read_handle(decoder, decoder.text.operands()[1]);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], Type::kU32);
  Instruction& instruction = decoder.writer.emit(query<kIsSurface>);
  instruction.dst = dst;
  instruction.a = handle;
  instruction.mode = which;
}

// ---- surfaces: plain bytes, x counted in bytes

// What an access outside the surface does.
enum Outside : std::uint16_t { kTrap, kClamp, kZero };

// mode: the geometry and, from here, what happens outside.
constexpr int kOutsideShift = 6;

// The address of `bytes` bytes at the coordinates, 0 where nothing is accessed; false after a fault.
bool surface_address(Warp& warp, const Instruction* at, const TextureDescription& surface,
                     const std::int64_t (&index)[3], std::uint64_t bytes, int lane, u64& address) {
  const auto outside = static_cast<Outside>(at->mode >> kOutsideShift);
  const auto row_bytes = static_cast<std::int64_t>(surface.width * surface.channels * channel_bytes(surface.channel));
  const std::int64_t last[3] = {row_bytes - static_cast<std::int64_t>(bytes),
                                static_cast<std::int64_t>(std::max<std::size_t>(surface.height, 1)) - 1,
                                static_cast<std::int64_t>(std::max<std::size_t>(surface.depth, 1)) - 1};
  std::int64_t inside[3];
  for (int axis = 0; axis < 3; ++axis) {
    inside[axis] = std::clamp<std::int64_t>(index[axis], 0, std::max<std::int64_t>(last[axis], 0));
    if (inside[axis] == index[axis] && last[axis] >= 0) continue;
    address = 0;
    if (outside == kZero) return true;
    if (outside == kClamp && last[axis] >= 0) continue;
    raise(warp, at, FaultKind::kIllegalAddress, surface.base, lane);
    return false;
  }
  address = surface.base + static_cast<u64>(inside[2]) * surface.slice_bytes +
            static_cast<u64>(inside[1]) * surface.pitch_bytes + static_cast<u64>(inside[0]);
  return true;
}

// Rows: the elements, then the layer if there is one, then a coordinate for each axis.
template <class T, bool kIsLoad>
const Instruction* access_surface(Warp& warp, const Instruction* at) {
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  const Geometry& geometry = kGeometries[at->mode & 7];
  const auto axes = static_cast<std::size_t>(geometry.axes) + (geometry.has_layers ? 1 : 0);
  const std::size_t count = rows.size() - axes;
  const u64* handles = source<u64>(warp, at->a);
  for (u32 rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    TextureDescription surface;
    if (!find_object<true>(warp, at, handles[lane], surface)) return nullptr;
    std::int64_t index[3] = {0, 0, 0};
    for (std::size_t i = 0; i < axes; ++i) {
      const std::size_t axis = !geometry.has_layers ? i : i == 0 ? 2 : i - 1;
      index[axis] = source<std::int32_t>(warp, rows[count + i])[lane];
    }
    u64 address = 0;
    if (!surface_address(warp, at, surface, index, sizeof(T) * count, lane, address)) return nullptr;
    std::byte* host = nullptr;
    if (address != 0 && (host = locate(warp, at, Space::kGlobal, address, sizeof(T) * count, lane)) == nullptr) {
      return nullptr;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (kIsLoad) {
        T value = 0;
        if (host != nullptr) std::memcpy(&value, host + i * sizeof(T), sizeof(T));
        if (rows[i] != kNoRow) row<T>(warp, rows[i])[lane] = value;
      } else if (host != nullptr) {
        std::memcpy(host + i * sizeof(T), &source<T>(warp, rows[i])[lane], sizeof(T));
      }
    }
  }
  return at + 1;
}

void decode_surface(Decoder& decoder) {
  constexpr std::string_view kOutside[] = {"trap", "clamp", "zero"};
  const bool is_load = decoder.text.opcode() == "suld";
  if (!decoder.text.take("b")) return decoder.text.refuse("only the unformatted .b form is supported");
  const int geometry_index = take_geometry(decoder);
  const Type type = decoder.text.take_type();
  for (const char* hint : {"ca", "cg", "cs", "cv", "wb", "wt"}) decoder.text.take(hint);
  const std::size_t count = decoder.text.take("v4") ? 4 : decoder.text.take("v2") ? 2 : 1;
  const int outside = std::max(decoder.text.take_any(kOutside), 0);
  if (geometry_index < 0 || !decoder.text.expect_operands(3, 3)) return;
  const Geometry& geometry = kGeometries[geometry_index];
  const auto operands = decoder.text.operands();
  // suld: values, [surface, coordinates]; sust: [surface, coordinates], values.
  const std::size_t surface_at = is_load ? 1 : 0, values_at = is_load ? 0 : 2;
  const auto values = elements_of(decoder, operands[values_at]);
  const auto coordinates = elements_of(decoder, operands[surface_at + 1]);
  const std::size_t needed = static_cast<std::size_t>(geometry.axes) + (geometry.has_layers ? 1 : 0);
  if (values.size() != count || coordinates.size() < needed || size_of(type) * count > 16) {
    return decoder.text.refuse("the number of values or coordinates does not fit", LoadError::Kind::kSyntax);
  }
  const auto handle = read_handle(decoder, operands[surface_at]);
  RowList read, rows;
  for (std::size_t i = 0; i < needed; ++i) read.rows.push_back(decoder.rows.read(coordinates[i], Type::kU32));
  for (const ast::Operand& one : values) {
    const bool is_sink = is_load && one.kind == ast::Operand::Kind::kSink;
    rows.rows.push_back(is_sink ? kNoRow : is_load ? decoder.rows.write(one, type) : decoder.rows.read(one, type));
  }
  rows.rows.insert(rows.rows.end(), read.rows.begin(), read.rows.end());
  const RowList* kept = decoder.writer.keep(std::move(rows));
  Instruction& instruction = decoder.writer.emit_memory(with_bits(size_of(type), [&](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return is_load ? access_surface<T, true> : access_surface<T, false>;
  }));
  instruction.a = handle;
  instruction.data = kept;
  instruction.mode = static_cast<std::uint16_t>(geometry_index | outside << kOutsideShift);
}

constexpr Opcode kOpcodes[] = {{"tex", decode_fetch},
                               {"txq", decode_query<false>},
                               {"suq", decode_query<true>},
                               {"suld", decode_surface},
                               {"sust", decode_surface}};

}  // namespace

std::span<const Opcode> texture_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
