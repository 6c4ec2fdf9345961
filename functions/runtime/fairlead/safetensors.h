// The header of a safetensors file: which tensors it has, and where their bytes are. Bounded: a file is 8 bytes with the
// header's length, the header (a JSON object), then the tensors' bytes without gaps.
//
// Example: read_safetensors_header(bytes of the file's beginning, size of the file).tensors.at("bias").begin
//
// Errors: throws Error("Model.Format") that names the tensor, the field, its value and the bound.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

struct SafetensorsHeader {
  struct Tensor {
    std::string dtype;  // "F32", "BF16", ...
    std::vector<std::uint64_t> shape;
    std::uint64_t begin = 0;  // in the data
    std::uint64_t end = 0;
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  // in the file
  std::uint64_t data_bytes = 0;
};

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // the format's own bound

// How many bytes after the first 8 the header has, by those 8. `file_bytes`: of the whole file.
std::uint64_t safetensors_header_bytes(std::string_view first8, std::uint64_t file_bytes);
// `json`: exactly the header.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t file_bytes);

}  // namespace fairlead
