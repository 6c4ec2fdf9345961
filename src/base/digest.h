// SHA-256 of bytes by OpenSSL, which uses the processor's instructions for it, and BLAKE2b by libsodium: whole, or piece by piece.
//
// Which: SHA-256 where others compute it too (bundles, images, SigV4); BLAKE2b, which is fast on any processor, for what only this node
// and its clients' own hash functions see (objects, tensors).
//
// Pure. Threads: values; one thread each.
#pragma once

#include <sodium/crypto_generichash.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // of <openssl/evp.h>

namespace fairlead {

using Digest = std::array<unsigned char, 32>;

inline std::string_view as_text(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}
std::string to_hex(std::string_view bytes);  // lower case

class Sha256 {
 public:
  Sha256();
  Sha256& add(std::string_view bytes);
  Digest finish();  // once

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

class Blake2b {
 public:
  Blake2b();
  Blake2b& add(std::string_view bytes);
  Digest finish();  // once

 private:
  crypto_generichash_state state_;
};

inline Digest sha256(std::string_view bytes) {
  return Sha256().add(bytes).finish();
}
inline Digest blake2b(std::string_view bytes) {
  return Blake2b().add(bytes).finish();
}

}  // namespace fairlead
