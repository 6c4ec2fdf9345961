// Matrices between memory and registers: ldmatrix, stmatrix and movmatrix for 8x8 matrices of 16 bits, wmma.load and
// wmma.store for whole operands. Where elements lie in registers: fragment.h.
#include <algorithm>

#include "softgpu/ptx/memory.h"
#include "softgpu/ptx/ops/fragment.h"
#include "softgpu/ptx/ops/members.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// ---- 8x8 matrices

constexpr unsigned kSide = 8;
constexpr std::size_t kRowBytes = kSide * sizeof(u16);

struct Tile {
  u16 at[kSide][kSide];
};

// Lane l holds elements (l / 4, 2 (l % 4)) and the next of its row; transposed, of its column.
u32 tile_word(const Tile& tile, unsigned lane, bool transposes) {
  const unsigned row = lane / 4, column = lane % 4 * 2;
  const u16 low = transposes ? tile.at[column][row] : tile.at[row][column];
  const u16 high = transposes ? tile.at[column + 1][row] : tile.at[row][column + 1];
  return u32{high} << 16 | low;
}
void put_tile_word(Tile& tile, unsigned lane, bool transposes, u32 word) {
  const unsigned row = lane / 4, column = lane % 4 * 2;
  (transposes ? tile.at[column][row] : tile.at[row][column]) = static_cast<u16>(word);
  (transposes ? tile.at[column + 1][row] : tile.at[row][column + 1]) = static_cast<u16>(word >> 16);
}

// Lane 8 i + r has the address of row r of matrix i. Null after a fault.
std::byte* tile_row(Warp& warp, const Instruction* at, std::size_t matrix, unsigned row_index) {
  const auto lane = static_cast<unsigned>(matrix * kSide + row_index);
  const u64 address = source<u64>(warp, at->a)[lane] + static_cast<u64>(at->immediate);
  return locate(warp, at, static_cast<Space>(at->mode & 15), address, kRowBytes, static_cast<int>(lane));
}
constexpr std::uint16_t kTransposes = 16;  // in mode, above the space

const Instruction* load_tiles(Warp& warp, const Instruction* at) {
  if (!is_warp_together(warp)) return await_lanes(warp, at);
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  Tile tiles[4];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (unsigned r = 0; r < kSide; ++r) {
      const std::byte* host = tile_row(warp, at, i, r);
      if (host == nullptr) return nullptr;
      std::memcpy(tiles[i].at[r], host, kRowBytes);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    write_lanes<u32>(warp, rows[i], [&](int lane) {
      return tile_word(tiles[i], static_cast<unsigned>(lane), (at->mode & kTransposes) != 0);
    });
  }
  return at + 1;
}

const Instruction* store_tiles(Warp& warp, const Instruction* at) {
  if (!is_warp_together(warp)) return await_lanes(warp, at);
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Tile tile;
    const u32* words = source<u32>(warp, rows[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      put_tile_word(tile, lane, (at->mode & kTransposes) != 0, words[lane]);
    }
    for (unsigned r = 0; r < kSide; ++r) {
      std::byte* host = tile_row(warp, at, i, r);
      if (host == nullptr) return nullptr;
      std::memcpy(host, tile.at[r], kRowBytes);
    }
  }
  return at + 1;
}

const Instruction* transpose_tile(Warp& warp, const Instruction* at) {
  if (!is_warp_together(warp)) return await_lanes(warp, at);
  Tile tile;
  const u32* words = source<u32>(warp, at->a);
  for (unsigned lane = 0; lane < kLanes; ++lane) put_tile_word(tile, lane, false, words[lane]);
  write_lanes<u32>(warp, at->dst, [&](int lane) { return tile_word(tile, static_cast<unsigned>(lane), true); });
  return at + 1;
}

// ---- wmma operands

// What Instruction::c says of a matrix in memory; immediate is the offset of its address.
struct Operand {
  unsigned rows = 0, columns = 0;
  Element element = Element::kF16;
  bool is_column_major = false;
  Space space = Space::kGeneric;

  std::int32_t packed() const {
    return static_cast<std::int32_t>(rows | columns << 8 | static_cast<unsigned>(element) << 16 |
                                     static_cast<unsigned>(is_column_major) << 20 | static_cast<unsigned>(space) << 21);
  }
  static Operand unpacked(std::int32_t packed) {
    const auto bits = static_cast<u32>(packed);
    return {bits & 255, bits >> 8 & 255, static_cast<Element>(bits >> 16 & 15), (bits >> 20 & 1) != 0,
            static_cast<Space>(bits >> 21 & 15)};
  }
};

// The elements of a matrix in memory, which begin `stride` elements apart from line to line. All lanes give the same
// address and stride; those of the first one count. A stride of single bits becomes one of words.
class MatrixInMemory {
 public:
  MatrixInMemory(Warp& warp, const Instruction* at, const Operand& operand)
      : warp_(warp),
        at_(at),
        operand_(operand),
        lane_(__builtin_ctz(warp.mask)),
        base_(source<u64>(warp, at->a)[lane_] + static_cast<u64>(at->immediate)),
        stride_(at->b == kNoRow ? length()
                                : source<u32>(warp, at->b)[lane_] / (operand.element == Element::kB1 ? 32 : 1)) {}

  // Bits of an element, or its host address; null after a fault.
  std::byte* find(unsigned row_index, unsigned column, unsigned& shift) const {
    const u64 line = operand_.is_column_major ? column : row_index;
    const u64 along = operand_.is_column_major ? row_index : column;
    const u64 bit = (line * stride_ + along) * element_bits(operand_.element);
    shift = static_cast<unsigned>(bit % 8);
    const u64 bytes = std::max(element_bits(operand_.element) / 8, 1u);
    return locate(warp_, at_, operand_.space, base_ + bit / 8, bytes, lane_);
  }

 private:
  u64 length() const { return operand_.is_column_major ? operand_.rows : operand_.columns; }

  Warp& warp_;
  const Instruction* at_;
  Operand operand_;
  int lane_;
  u64 base_, stride_;
};

constexpr unsigned kLargestMatrix = 512;  // 32 x 16

const Instruction* load_operand(Warp& warp, const Instruction* at) {
  if (!is_warp_together(warp)) return await_lanes(warp, at);
  const Operand operand = Operand::unpacked(at->c);
  const unsigned bits = element_bits(operand.element);
  const MatrixInMemory memory(warp, at, operand);
  u64 matrix[kLargestMatrix] = {};
  for (unsigned i = 0; i < operand.rows * operand.columns; ++i) {
    unsigned shift = 0;
    const std::byte* host = memory.find(i / operand.columns, i % operand.columns, shift);
    if (host == nullptr) return nullptr;
    std::memcpy(&matrix[i], host, std::max(bits / 8, 1u));
    if (bits < 8) matrix[i] = matrix[i] >> shift & ((1u << bits) - 1);
  }
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  const auto per_lane = static_cast<unsigned>(rows.size()) * per_register(operand.element);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned e = 0; e < per_lane && (warp.mask >> lane & 1) != 0; ++e) {
      const Place place = wmma_place(operand.rows, operand.columns, per_lane, lane, e);
      put_element(warp, rows.data(), operand.element, lane, e, matrix[place.row * operand.columns + place.column]);
    }
  }
  return at + 1;
}

const Instruction* store_operand(Warp& warp, const Instruction* at) {
  if (!is_warp_together(warp)) return await_lanes(warp, at);
  const Operand operand = Operand::unpacked(at->c);
  const MatrixInMemory memory(warp, at, operand);
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  const auto per_lane = static_cast<unsigned>(rows.size()) * per_register(operand.element);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned e = 0; e < per_lane; ++e) {
      const Place place = wmma_place(operand.rows, operand.columns, per_lane, lane, e);
      unsigned shift = 0;
      std::byte* host = memory.find(place.row, place.column, shift);
      if (host == nullptr) return nullptr;
      const u64 value = element_in(warp, rows.data(), operand.element, lane, e);
      std::memcpy(host, &value, element_bits(operand.element) / 8);
    }
  }
  return at + 1;
}

// ---- decoding

void set_address(Instruction& instruction, const Address& address) {
  instruction.a = address.row;
  instruction.immediate = address.offset;
}
void decode_tiles(Decoder& decoder) {
  constexpr std::string_view kCounts[] = {"x1", "x2", "x4"};
  const bool is_load = decoder.text.opcode() == "ldmatrix";
  for (const char* word : {"sync", "aligned", "m8n8", "b16"}) decoder.text.take(word);
  const int count = decoder.text.take_any(kCounts);
  const bool transposes = decoder.text.take("trans");
  const Space space = decoder.text.maybe_space().value_or(Space::kGeneric);
  if (space != Space::kShared && space != Space::kGeneric)
    return decoder.text.refuse("the matrices must be in shared memory");
  if (count < 0) return decoder.text.refuse(".x1, .x2 or .x4 is missing", LoadError::Kind::kSyntax);
  if (!decoder.text.expect_operands(2, 2)) return;
  const auto operands = decoder.text.operands();
  const auto registers = elements_of(decoder, operands[is_load ? 0 : 1]);
  if (registers.size() != std::size_t{1} << count) {
    return decoder.text.refuse("the number of registers does not fit", LoadError::Kind::kSyntax);
  }
  const Address address = wide_address(decoder, operands[is_load ? 1 : 0], space);
  RowList rows;
  for (const ast::Operand& one : registers) {
    rows.rows.push_back(is_load ? decoder.rows.write(one, Type::kU32) : decoder.rows.read(one, Type::kU32));
  }
  const RowList* kept = decoder.writer.keep(std::move(rows));
  Instruction& instruction = decoder.writer.emit_memory(is_load ? load_tiles : store_tiles);
  set_address(instruction, address);
  instruction.data = kept;
  instruction.mode = static_cast<std::uint16_t>(static_cast<unsigned>(space) | (transposes ? kTransposes : 0));
}

void decode_transpose(Decoder& decoder) {
  for (const char* word : {"sync", "aligned", "m8n8", "b16"}) decoder.text.take(word);
  if (!decoder.text.take("trans")) return decoder.text.refuse(".trans is missing", LoadError::Kind::kSyntax);
  emit_unary(decoder, transpose_tile, Type::kU32, Type::kU32);
}

struct Shape {
  std::string_view name;
  unsigned m, n, k;
};
constexpr Shape kShapes[] = {{"m16n16k16", 16, 16, 16}, {"m32n8k16", 32, 8, 16}, {"m8n32k16", 8, 32, 16},
                             {"m16n16k8", 16, 16, 8},   {"m8n8k4", 8, 8, 4},     {"m8n8k32", 8, 8, 32},
                             {"m8n8k128", 8, 8, 128}};

bool take_operand(Decoder& decoder, bool is_load, Operand& out) {
  constexpr std::string_view kFragments[] = {"a", "b", "c", "d"};
  const int fragment = decoder.text.take_any(kFragments);
  const bool is_accumulator = fragment >= 2;
  const auto shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                  [&](const Shape& known) { return decoder.text.take(known.name); });
  const int element = decoder.text.take_any(kElementNames);
  const bool is_row_major = decoder.text.take("row");
  out.is_column_major = !is_row_major && decoder.text.take("col");
  out.space = decoder.text.maybe_space().value_or(Space::kGeneric);
  if (shape == std::end(kShapes) || fragment < 0 || element < 0 || (!is_row_major && !out.is_column_major))
    return false;
  if (is_load ? fragment == 3 : fragment != 3) return false;
  out.element = static_cast<Element>(element);
  const unsigned k = out.element == Element::kB1 ? shape->k / 32 : shape->k;
  out.rows = fragment == 1 ? k : shape->m;
  out.columns = fragment == 0 ? k : shape->n;
  const bool holds_sums = out.element == Element::kF32 || out.element == Element::kS32 ||
                          out.element == Element::kF16 || out.element == Element::kF64;
  return is_accumulator ? holds_sums : out.element != Element::kF32 && out.element != Element::kS32;
}

void decode_wmma_memory(Decoder& decoder, bool is_load) {
  decoder.text.take("sync");
  decoder.text.take("aligned");
  Operand operand;
  if (!take_operand(decoder, is_load, operand)) return decoder.text.refuse("shape or type is not supported");
  if (operand.space != Space::kGlobal && operand.space != Space::kShared && operand.space != Space::kGeneric) {
    return decoder.text.refuse("the state space is not supported");
  }
  if (!decoder.text.expect_operands(2, 3)) return;
  const auto operands = decoder.text.operands();
  const Address address = wide_address(decoder, operands[is_load ? 1 : 0], operand.space);
  const auto stride = operands.size() == 3 ? decoder.rows.read(operands[2], Type::kU32) : kNoRow;
  RowList rows;
  const Type type = operand.element == Element::kF64 ? Type::kU64 : Type::kU32;
  for (const ast::Operand& one : elements_of(decoder, operands[is_load ? 0 : 1])) {
    rows.rows.push_back(is_load ? decoder.rows.write(one, type) : decoder.rows.read(one, type));
  }
  const std::size_t held = rows.rows.size() * per_register(operand.element) * kLanes;
  if (rows.rows.size() > 16 || held < std::size_t{operand.rows} * operand.columns) {
    return decoder.text.refuse("the number of registers does not fit", LoadError::Kind::kSyntax);
  }
  const RowList* kept = decoder.writer.keep(std::move(rows));
  Instruction& instruction = decoder.writer.emit_memory(is_load ? load_operand : store_operand);
  set_address(instruction, address);
  instruction.b = stride;
  instruction.c = operand.packed();
  instruction.data = kept;
}

void decode_wmma(Decoder& decoder) {
  if (decoder.text.take("mma")) return decode_wmma_product(decoder);
  const bool is_load = decoder.text.take("load");
  if (!is_load && !decoder.text.take("store")) return decoder.text.refuse("the operation is not supported");
  decode_wmma_memory(decoder, is_load);
}

constexpr Opcode kOpcodes[] = {
    {"ldmatrix", decode_tiles, GuardMode::kBranch},
    {"stmatrix", decode_tiles, GuardMode::kBranch},
    {"movmatrix", decode_transpose, GuardMode::kBranch},
    {"wmma", decode_wmma, GuardMode::kBranch},
};

}  // namespace

std::span<const Opcode> matrix_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
