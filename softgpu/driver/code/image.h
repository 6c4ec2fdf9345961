// What a program gives as device code: PTX text, a fat binary, or machine code, which cannot run here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/driver/api.h"

namespace softgpu {

// The PTX of an image: one text, or one for each architecture of a fat binary.
struct CodeImage {
  struct Text {
    int architecture = 0;  // as the container says; the text's own header decides
    std::string text;
  };
  std::vector<Text> texts;
  bool is_container = false;
};

// Reads an image of unknown length: text ends with a NUL, a container says how long it is and must be mapped to its end.
// INVALID_IMAGE for what is neither or is damaged, NO_BINARY_FOR_GPU for machine code without PTX; `error` says why.
// A wrapper of a fat binary is an INVALID_IMAGE: an H200's driver (CUDA 13.0) refuses it in cuModuleLoadData and in
// cuModuleLoadFatBinary.
CUresult read_image(const void* image, CodeImage& out, std::string& error);
// The same, and what a wrapper points to; what hardware does with a wrapper in cuLibraryLoadData is not known yet.
CUresult read_library_image(const void* image, CodeImage& out, std::string& error);
// Reads an image of known length, which need not end with a NUL.
CUresult read_image(std::span<const std::byte> image, CodeImage& out, std::string& error);
// The bytes of a file. INVALID_VALUE or FILE_NOT_FOUND.
CUresult read_file(const char* path, std::vector<std::byte>& bytes);

// The text a device of `architecture` (75 for 7.5) takes: the newest it can run. NO_BINARY_FOR_GPU when a container has
// none, INVALID_PTX for a text of a newer architecture, UNSUPPORTED_PTX_VERSION for one of a newer language.
CUresult choose_text(const CodeImage& image, int architecture, std::string_view& text, std::string& error);

}  // namespace softgpu
