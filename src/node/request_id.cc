#include "node/request_id.h"

#include <sodium.h>

namespace fairlead {
namespace {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  randombytes_buf(&seed, sizeof(seed));
  return seed;
}

void append_hex(std::string& out, std::uint64_t value, int digits) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out.push_back(kHex[(value >> shift) & 15]);
}

}  // namespace

RequestIds::RequestIds() : rng_(random_seed()) {}

std::string RequestIds::next() {
  const std::uint64_t high = rng_.next();
  const std::uint64_t low = rng_.next();
  std::string id;
  id.reserve(36);
  append_hex(id, high >> 32, 8);
  id.push_back('-');
  append_hex(id, high >> 16, 4);
  id.push_back('-');
  append_hex(id, 0x4000 | (high & 0x0fff), 4);
  id.push_back('-');
  append_hex(id, 0x8000 | ((low >> 48) & 0x3fff), 4);
  id.push_back('-');
  append_hex(id, low, 12);
  return id;
}

}  // namespace fairlead
