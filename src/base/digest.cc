#include "base/digest.h"

#include <sodium/utils.h>

namespace fairlead {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string to_hex(std::string_view bytes) {
  std::string text(bytes.size() * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_of(bytes), bytes.size());
  text.pop_back();  // the terminating NUL
  return text;
}

Sha256::Sha256() {
  crypto_hash_sha256_init(&state_);
}

Sha256& Sha256::add(std::string_view bytes) {
  crypto_hash_sha256_update(&state_, bytes_of(bytes), bytes.size());
  return *this;
}

Digest Sha256::finish() {
  Digest digest;
  crypto_hash_sha256_final(&state_, digest.data());
  return digest;
}

Blake2b::Blake2b() {
  crypto_generichash_init(&state_, nullptr, 0, std::tuple_size_v<Digest>);
}

Blake2b& Blake2b::add(std::string_view bytes) {
  crypto_generichash_update(&state_, bytes_of(bytes), bytes.size());
  return *this;
}

Digest Blake2b::finish() {
  Digest digest;
  crypto_generichash_final(&state_, digest.data(), digest.size());
  return digest;
}

}  // namespace fairlead
