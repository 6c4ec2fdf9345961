// Constant expressions: C's operators over 64-bit integers, as PTX has them in operands, offsets, extents and initial
// values. Arithmetic wraps; a value is unsigned when its literal says so or does not fit into 63 bits, and an operation is
// when one of its operands is.
//
//   .b8 a[(WARP_SZ << 2) + 1]      129 elements
//   mov.u64 %a, -1 > 0U ? 1 : 2    1: the comparison is unsigned
//
// Functions return false when the reader has failed (token_reader.h).
#pragma once

#include <cstdint>

#include "softgpu/ptx/text/token_reader.h"

namespace softgpu::ptx {

// The value of a constant expression.
struct Constant {
  std::uint64_t bits = 0;
  bool is_unsigned = false;
};

// Whether a constant expression begins here that is no floating-point number. `!p` is a predicate.
bool starts_expression(const TokenReader& reader);
bool read_expression(TokenReader& reader, Constant& out);
// What is left of `sum` in `symbol + sum` and the like, where the signs belong to the surroundings.
bool read_term(TokenReader& reader, Constant& out);

}  // namespace softgpu::ptx
