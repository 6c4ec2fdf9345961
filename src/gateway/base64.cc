#include "gateway/base64.h"

#include <sodium.h>

namespace fairlead {

namespace {
constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    kVariant);
  text.pop_back();  // the terminating NUL
  return text;
}

Result<std::string> base64_decode(std::string_view field, std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  std::size_t size = 0;
  const char* end = nullptr;
  const int code = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                                     text.size(), nullptr, &size, &end, kVariant);
  if (code != 0 || end != text.data() + text.size()) {
    return fail(Errc::kInvalidArgument, "{}: its {} characters are not base64 with padding", field, text.size());
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace fairlead
