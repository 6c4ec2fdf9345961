#include "base/digest.h"

#include <openssl/evp.h>
#include <sodium/utils.h>

#include "base/check.h"

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

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  static const EVP_MD* const kind =
      EVP_MD_fetch(nullptr, "SHA256", nullptr);  // once: it takes longer than a short text's hash
  FL_CHECK(kind != nullptr && context_ && EVP_DigestInit_ex2(context_.get(), kind, nullptr) == 1,
           "OpenSSL has no SHA-256");
}

Sha256& Sha256::add(std::string_view bytes) {
  FL_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "SHA-256 of {} bytes", bytes.size());
  return *this;
}

Digest Sha256::finish() {
  Digest digest;
  FL_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1, "SHA-256");
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
