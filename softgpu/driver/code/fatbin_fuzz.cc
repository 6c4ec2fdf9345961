// libFuzzer: any bytes are either read or refused with an error, and nothing outside them is touched.
#include <cstdlib>
#include <vector>

#include "softgpu/driver/code/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy on the heap, so that AddressSanitizer sees a read past the end.
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  const auto entries = softgpu::read_fatbin(bytes);
  if (!entries) return entries.error().empty() ? std::abort(), 0 : 0;
  for (const softgpu::FatbinEntry& entry : *entries) {
    if (entry.payload.data() < bytes.data() || entry.payload.data() + entry.payload.size() > bytes.data() + size) {
      std::abort();
    }
    // A claim of a large text costs memory, not correctness; the fuzzer has little.
    if (entry.kind != softgpu::FatbinEntry::Kind::kPtx || entry.text_bytes > (1 << 20)) continue;
    const auto text = softgpu::ptx_text(entry);
    if (text && text->find('\0') != std::string::npos) std::abort();
  }
  return 0;
}
