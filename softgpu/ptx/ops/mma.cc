// Matrix products of a warp: mma.sync and wmma.mma, D = A B + C. Products are exact; sums are made in double, in the
// order of k, and rounded once to the accumulator's type. (Tensor cores round in between, in a way that NVIDIA does not
// state.) Integers wrap or, with .satfinite, saturate at the end; single bits are combined and counted.
#include <algorithm>
#include <cmath>

#include "softgpu/ptx/budget.h"
#include "softgpu/ptx/ops/fragment.h"
#include "softgpu/ptx/ops/members.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr unsigned kLargestMatrix = 1024;      // elements of A or B: 16 x 64 of 4 bits
constexpr unsigned kLargestAccumulator = 256;  // 16 x 16

// What Instruction::immediate says of a product.
struct Product {
  unsigned m = 0, n = 0, k = 0;
  Element a = Element::kF16, b = Element::kF16, c = Element::kF32, d = Element::kF32;
  bool is_wmma = false;
  bool saturates = false;
  bool combines_by_and = false;  // single bits: and, else xor

  std::int64_t packed() const {
    const u64 elements =
        static_cast<u64>(a) | static_cast<u64>(b) << 4 | static_cast<u64>(c) << 8 | static_cast<u64>(d) << 12;
    const u64 flags = (is_wmma ? 1u : 0u) | (saturates ? 2u : 0u) | (combines_by_and ? 4u : 0u);
    return static_cast<std::int64_t>(elements | flags << 16 | u64{m} << 24 | u64{n} << 32 | u64{k} << 40);
  }
  static Product unpacked(std::int64_t immediate) {
    const auto bits = static_cast<u64>(immediate);
    const auto element = [&](int shift) { return static_cast<Element>(bits >> shift & 15); };
    return {static_cast<unsigned>(bits >> 24 & 255),
            static_cast<unsigned>(bits >> 32 & 255),
            static_cast<unsigned>(bits >> 40),
            element(0),
            element(4),
            element(8),
            element(12),
            (bits >> 16 & 1) != 0,
            (bits >> 17 & 1) != 0,
            (bits >> 18 & 1) != 0};
  }
};

// The rows of an instruction: those of D, A, B and C one behind another; their numbers are bytes of Instruction::slot.
struct Operands {
  const std::int32_t *d, *a, *b, *c;
  unsigned d_count, a_count, b_count, c_count;

  explicit Operands(const Instruction* at)
      : d(static_cast<const RowList*>(at->data)->rows.data()),
        d_count(at->slot & 255),
        a_count(at->slot >> 8 & 255),
        b_count(at->slot >> 16 & 255),
        c_count(at->slot >> 24) {
    a = d + d_count;
    b = a + a_count;
    c = b + b_count;
  }
};

Place place_of(const Product& product, Fragment fragment, Element element, unsigned count, unsigned lane, unsigned e) {
  const unsigned rows = fragment == Fragment::kB ? product.k : product.m;
  const unsigned columns = fragment == Fragment::kA ? product.k : product.n;
  const unsigned p = per_register(element);
  return product.is_wmma ? wmma_place(rows, columns, count * p, lane, e) : mma_place(fragment, rows, p, lane, e);
}

// Fills `matrix`, row by row, with the elements of a fragment as T.
template <class T>
void gather(Warp& warp, const Product& product, Fragment fragment, Element element, const std::int32_t* rows,
            unsigned count, T* matrix) {
  const unsigned columns = fragment == Fragment::kA ? product.k : product.n;
  const unsigned per_lane = count * per_register(element);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned e = 0; e < per_lane; ++e) {
      const Place place = place_of(product, fragment, element, count, lane, e);
      const u64 bits = element_in(warp, rows, element, lane, e);
      T& to = matrix[place.row * columns + place.column];
      if constexpr (sizeof(T) == sizeof(u32)) {
        to = static_cast<T>(element == Element::kB1 ? static_cast<std::int32_t>(bits)
                                                    : static_cast<std::int32_t>(element_value(element, bits)));
      } else {
        to = static_cast<T>(element_value(element, bits));
      }
    }
  }
}

template <class F>
void scatter(Warp& warp, const Product& product, const Operands& operands, const F& result_bits) {
  const unsigned per_lane = operands.d_count * per_register(product.d);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((warp.mask >> lane & 1) == 0) continue;
    for (unsigned e = 0; e < per_lane; ++e) {
      const Place place = place_of(product, Fragment::kAccumulator, product.d, operands.d_count, lane, e);
      put_element(warp, operands.d, product.d, lane, e, result_bits(place.row * product.n + place.column));
    }
  }
}

u64 rounded_bits(Element element, double value) {
  if (element == Element::kF64) return std::bit_cast<u64>(value);
  if (element == Element::kF32) return std::bit_cast<u32>(static_cast<float>(value));
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

// sums += a b; f64 rounds each product and sum at once, as a chain of fma does.
template <bool kFuses>
void multiply(const Product& product, const double* a, const double* b, double* sums) {
  for (unsigned row = 0; row < product.m; ++row) {
    for (unsigned k = 0; k < product.k; ++k) {
      const double left = a[row * product.k + k];
      const double* right = b + k * product.n;
      double* sum = sums + row * product.n;
      for (unsigned column = 0; column < product.n; ++column) {
        sum[column] = kFuses ? __builtin_fma(left, right[column], sum[column]) : sum[column] + left * right[column];
      }
    }
  }
}

// A product takes as long as hundreds of other instructions.
void pay_for(Warp& warp, const Product& product) {
  spend(warp, static_cast<std::ptrdiff_t>(product.m * product.n * product.k / 4));
}

const Instruction* multiply_floats(Warp& warp, const Instruction* at) {
  if (!is_warp_together(warp)) return await_lanes(warp, at);
  const Product product = Product::unpacked(at->immediate);
  pay_for(warp, product);
  const Operands operands(at);
  alignas(kRowAlignment) double a[kLargestMatrix], b[kLargestMatrix], sums[kLargestAccumulator];
  gather(warp, product, Fragment::kA, product.a, operands.a, operands.a_count, a);
  gather(warp, product, Fragment::kB, product.b, operands.b, operands.b_count, b);
  gather(warp, product, Fragment::kAccumulator, product.c, operands.c, operands.c_count, sums);
  if (product.a == Element::kF64) {
    multiply<true>(product, a, b, sums);
  } else {
    multiply<false>(product, a, b, sums);
  }
  scatter(warp, product, operands, [&](unsigned i) { return rounded_bits(product.d, sums[i]); });
  return at + 1;
}

// 64-bit sums cannot overflow: 64 products of 8 bits each.
const Instruction* multiply_integers(Warp& warp, const Instruction* at) {
  if (!is_warp_together(warp)) return await_lanes(warp, at);
  const Product product = Product::unpacked(at->immediate);
  pay_for(warp, product);
  const Operands operands(at);
  alignas(kRowAlignment) std::int32_t a[kLargestMatrix], b[kLargestMatrix];
  std::int64_t sums[kLargestAccumulator];
  gather(warp, product, Fragment::kA, product.a, operands.a, operands.a_count, a);
  gather(warp, product, Fragment::kB, product.b, operands.b, operands.b_count, b);
  gather(warp, product, Fragment::kAccumulator, product.c, operands.c, operands.c_count, sums);
  for (unsigned row = 0; row < product.m; ++row) {
    for (unsigned k = 0; k < product.k; ++k) {
      const std::int32_t left = a[row * product.k + k];
      for (unsigned column = 0; column < product.n; ++column) {
        sums[row * product.n + column] += left * b[k * product.n + column];
      }
    }
  }
  scatter(warp, product, operands, [&](unsigned i) {
    const std::int64_t sum = product.saturates ? std::clamp<std::int64_t>(sums[i], INT32_MIN, INT32_MAX) : sums[i];
    return static_cast<u64>(static_cast<u32>(sum));
  });
  return at + 1;
}

// k counts words of 32 bits here.
const Instruction* multiply_bits(Warp& warp, const Instruction* at) {
  if (!is_warp_together(warp)) return await_lanes(warp, at);
  const Product product = Product::unpacked(at->immediate);
  const Operands operands(at);
  u32 a[kLargestMatrix], b[kLargestMatrix], sums[kLargestAccumulator];
  gather(warp, product, Fragment::kA, product.a, operands.a, operands.a_count, a);
  gather(warp, product, Fragment::kB, product.b, operands.b, operands.b_count, b);
  gather(warp, product, Fragment::kAccumulator, product.c, operands.c, operands.c_count, sums);
  for (unsigned row = 0; row < product.m; ++row) {
    for (unsigned column = 0; column < product.n; ++column) {
      for (unsigned k = 0; k < product.k; ++k) {
        const u32 left = a[row * product.k + k], right = b[k * product.n + column];
        sums[row * product.n + column] +=
            static_cast<u32>(__builtin_popcount(product.combines_by_and ? left & right : left ^ right));
      }
    }
  }
  scatter(warp, product, operands, [&](unsigned i) { return u64{sums[i]}; });
  return at + 1;
}

// ---- decoding

struct Shape {
  std::string_view name;
  unsigned m, n, k;
};
constexpr Shape kShapes[] = {
    {"m8n8k4", 8, 8, 4},     {"m8n8k16", 8, 8, 16},     {"m8n8k32", 8, 8, 32},     {"m8n8k128", 8, 8, 128},
    {"m16n8k4", 16, 8, 4},   {"m16n8k8", 16, 8, 8},     {"m16n8k16", 16, 8, 16},   {"m16n8k32", 16, 8, 32},
    {"m16n8k64", 16, 8, 64}, {"m16n8k128", 16, 8, 128}, {"m16n8k256", 16, 8, 256}, {"m16n16k16", 16, 16, 16},
    {"m32n8k16", 32, 8, 16}, {"m8n32k16", 8, 32, 16},   {"m16n16k8", 16, 16, 8},
};

const Shape* take_shape(Decoder& decoder) {
  for (const Shape& shape : kShapes) {
    if (decoder.text.take(shape.name)) return &shape;
  }
  return nullptr;
}

// k by element: how many there are in 128 bits of a row, or twice as many.
bool exists_for_mma(const Shape& shape, Element element) {
  if (shape.n != 8 || shape.m == 32) return false;
  const unsigned k = shape.k;
  const bool is_tall = shape.m == 16;
  switch (element) {
    case Element::kF64: return is_tall ? k == 4 || k == 8 || k == 16 : k == 4;
    case Element::kTf32: return is_tall && (k == 4 || k == 8);
    case Element::kF16:
    case Element::kBf16: return is_tall && (k == 8 || k == 16);
    case Element::kE4m3:
    case Element::kE5m2: return is_tall && (k == 16 || k == 32);
    case Element::kS8:
    case Element::kU8: return k == 16 || (is_tall && k == 32);
    case Element::kS4:
    case Element::kU4: return k == 32 || (is_tall && k == 64);
    case Element::kB1: return k == 128 || (is_tall && k == 256);
    default: return false;
  }
}
bool exists_for_wmma(const Shape& shape, Element element) {
  const bool is_large = shape.m * shape.n == 256 && shape.k == 16;
  switch (element) {
    case Element::kF16:
    case Element::kBf16:
    case Element::kS8:
    case Element::kU8: return is_large;
    case Element::kTf32: return shape.name == "m16n16k8";
    case Element::kF64: return shape.name == "m8n8k4";
    case Element::kS4:
    case Element::kU4: return shape.name == "m8n8k32";
    case Element::kB1: return shape.name == "m8n8k128";
    default: return false;
  }
}

// The four types as spelled: D, A, B, C; of wmma with f16 only D and C.
bool take_elements(Decoder& decoder, Product& product) {
  int found[4] = {-1, -1, -1, -1};
  int count = 0;
  while (count < 4 && (found[count] = decoder.text.take_any(kElementNames)) >= 0) ++count;
  const auto element = [&](int i) { return static_cast<Element>(found[i]); };
  if (count == 2 && product.is_wmma) {
    product.d = element(0);
    product.a = product.b = Element::kF16;
    product.c = element(1);
    return true;
  }
  if (count != 4) return false;
  product.d = element(0);
  product.a = element(1);
  product.b = element(2);
  product.c = element(3);
  return true;
}

bool are_accumulators(const Product& product) {
  const auto is_one_of = [&](Element first, Element second) {
    return (product.c == first || product.c == second) && (product.d == first || product.d == second);
  };
  switch (product.a) {
    case Element::kF64: return is_one_of(Element::kF64, Element::kF64);
    case Element::kF16:
    case Element::kE4m3:
    case Element::kE5m2: return is_one_of(Element::kF16, Element::kF32);
    case Element::kBf16:
    case Element::kTf32: return is_one_of(Element::kF32, Element::kF32);
    default: return is_one_of(Element::kS32, Element::kS32);
  }
}

bool are_related(Element a, Element b) {
  const auto is_float8 = [](Element e) { return e == Element::kE4m3 || e == Element::kE5m2; };
  return a == b || (is_integer_element(a) && is_integer_element(b) && element_bits(a) == element_bits(b)) ||
         (is_float8(a) && is_float8(b));
}

// The rows of {r0, r1, ...}, or of a single register.
unsigned add_rows(Decoder& decoder, const ast::Operand& operand, Element element, bool writes, RowList& out) {
  const Type type = element == Element::kF64 ? Type::kU64 : Type::kU32;
  const auto elements = elements_of(decoder, operand);
  for (const ast::Operand& one : elements) {
    out.rows.push_back(writes ? decoder.rows.write(one, type) : decoder.rows.read(one, type));
  }
  return static_cast<unsigned>(elements.size());
}

bool fits(const Product& product, Element element, unsigned count, unsigned elements) {
  const unsigned held = count * per_register(element) * kLanes;
  return product.is_wmma ? held >= elements && count <= 16 : held == elements;
}

void emit_product(Decoder& decoder, Product product) {
  if (!decoder.text.expect_operands(4, 4)) return;
  const auto operands = decoder.text.operands();
  if (product.a == Element::kB1) product.k /= 32;
  RowList sources, rows;
  const unsigned a = add_rows(decoder, operands[1], product.a, false, sources);
  const unsigned b = add_rows(decoder, operands[2], product.b, false, sources);
  const unsigned c = add_rows(decoder, operands[3], product.c, false, sources);
  const unsigned d = add_rows(decoder, operands[0], product.d, true, rows);
  if (!fits(product, product.a, a, product.m * product.k) || !fits(product, product.b, b, product.k * product.n) ||
      !fits(product, product.c, c, product.m * product.n) || !fits(product, product.d, d, product.m * product.n)) {
    return decoder.text.refuse("the number of registers does not fit the shape", LoadError::Kind::kSyntax);
  }
  rows.rows.insert(rows.rows.end(), sources.rows.begin(), sources.rows.end());
  const RowList* kept = decoder.writer.keep(std::move(rows));
  Instruction& instruction = decoder.writer.emit(product.a == Element::kB1       ? multiply_bits
                                                 : is_integer_element(product.a) ? multiply_integers
                                                                                 : multiply_floats);
  instruction.data = kept;
  instruction.slot = d | a << 8 | b << 16 | c << 24;
  instruction.immediate = product.packed();
}

void decode_product(Decoder& decoder, bool is_wmma) {
  decoder.text.take("sync");
  decoder.text.take("aligned");
  const Shape* shape = take_shape(decoder);
  Product product;
  product.is_wmma = is_wmma;
  if (shape == nullptr || !take_elements(decoder, product))
    return decoder.text.refuse("shape or types are not supported");
  const bool exists = is_wmma ? exists_for_wmma(*shape, product.a) : exists_for_mma(*shape, product.a);
  if (!exists || !are_related(product.a, product.b) || !are_accumulators(product)) {
    return decoder.text.refuse("the shape does not exist for the types");
  }
  constexpr std::string_view kLayouts[] = {"row", "col"};
  const int a_layout = decoder.text.take_any(kLayouts), b_layout = decoder.text.take_any(kLayouts);
  // wmma fragments are independent of the layout they were loaded from.
  if (!is_wmma && (a_layout != 0 || b_layout != 1)) return decoder.text.refuse("the layouts must be .row.col");
  product.m = shape->m;
  product.n = shape->n;
  product.k = shape->k;
  product.saturates = decoder.text.take("satfinite");
  if (product.a == Element::kB1) {
    product.combines_by_and = decoder.text.take("and");
    if ((!product.combines_by_and && !decoder.text.take("xor")) || !decoder.text.take("popc")) {
      return decoder.text.refuse(".xor.popc or .and.popc is missing", LoadError::Kind::kSyntax);
    }
  }
  emit_product(decoder, product);
}

void decode_mma(Decoder& decoder) {
  decode_product(decoder, false);
}

constexpr Opcode kOpcodes[] = {{"mma", decode_mma, GuardMode::kBranch}};

}  // namespace

void decode_wmma_product(Decoder& decoder) {
  decode_product(decoder, true);
}

std::span<const Opcode> mma_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
