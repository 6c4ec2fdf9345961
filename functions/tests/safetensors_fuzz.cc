// libFuzzer: any bytes are the header of a safetensors file or refused; what is taken lies within its file.
#include <cstdint>
#include <cstdlib>

#include "fairlead/error.h"
#include "fairlead/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string json(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::uint64_t file_bytes = 8 + json.size() + data[0];
  try {
    const fairlead::SafetensorsHeader header = fairlead::parse_safetensors_header(json, file_bytes);
    for (const auto& [name, tensor] : header.tensors) {
      if (tensor.begin > tensor.end || header.data_begin + tensor.end > file_bytes) std::abort();
    }
  } catch (const fairlead::Error& error) {
    if (error.type() != "Model.Format") std::abort();
  }
  return 0;
}
