// libFuzzer: any header and any size are a part that lies inside the body and is no longer than allowed, the whole, or refused.
// The first 16 bytes are the size and the bound.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/fuzz_seeds.h"
#include "edge/native/byte_range.h"

namespace fairlead {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::string seed(std::uint64_t total, std::uint64_t most, const char* header) {
  std::string text(16, '\0');
  std::memcpy(text.data(), &total, 8);
  std::memcpy(text.data() + 8, &most, 8);
  return text + header;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {seed(250, 100, "bytes=0-99"), seed(250, 1000, "bytes=200-"), seed(250, 1000, "bytes=-10"),
          seed(~std::uint64_t{0}, 1, "bytes=18446744073709551614-18446744073709551615"), seed(0, 1, "bytes=0-0,5-6")};
}

}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 16) return 0;
  std::uint64_t total = 0, most = 0;
  std::memcpy(&total, data, 8);
  std::memcpy(&most, data + 8, 8);
  const std::string_view header(reinterpret_cast<const char*>(data) + 16, size - 16);
  const auto range = fairlead::byte_range(header, total, most);
  if (!range) {
    fairlead::require(!range.error().message.empty());
  } else if (*range) {
    fairlead::require((*range)->first < total && (*range)->bytes <= total - (*range)->first && (*range)->bytes <= most);
    fairlead::require((*range)->bytes > 0 || most == 0);
  }
  return 0;
}
