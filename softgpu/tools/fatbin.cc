// softgpu-fatbin: puts PTX files into a fat binary, which clang embeds into a host program with
// `-Xclang -fcuda-include-gpubinary -Xclang FILE`.
//
//   softgpu-fatbin [--compress none|lz4|zstd] -o OUT.fatbin A.ptx [B.ptx ..]
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "softgpu/driver/code/fatbin.h"
#include "softgpu/ptx/text/header.h"

namespace {

int usage() {
  std::fprintf(stderr, "usage: softgpu-fatbin [--compress none|lz4|zstd] -o OUT.fatbin A.ptx [B.ptx ..]\n");
  return 2;
}

bool read_compression(const std::string& name, softgpu::Compression& compression) {
  if (name != "none" && name != "lz4" && name != "zstd") return false;
  compression = name == "none"  ? softgpu::Compression::kNone
                : name == "lz4" ? softgpu::Compression::kLz4
                                : softgpu::Compression::kZstd;
  return true;
}

bool read_text(const std::string& path, std::string& text) {
  std::ifstream file(path, std::ios::binary);
  if (file) text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (!file) std::fprintf(stderr, "softgpu-fatbin: cannot read %s\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace

int main(int count, char** arguments) {
  softgpu::Compression compression = softgpu::Compression::kZstd;
  std::string output;
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "-o" && i + 1 < count) {
      output = arguments[++i];
    } else if (word == "--compress" && i + 1 < count) {
      if (!read_compression(arguments[++i], compression)) return usage();
    } else {
      paths.push_back(word);
    }
  }
  if (output.empty() || paths.empty()) return usage();
  std::vector<std::string> texts(paths.size());
  std::vector<softgpu::PtxForArchitecture> entries;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!read_text(paths[i], texts[i])) return 1;
    const auto header = softgpu::ptx::read_header(texts[i]);
    if (!header) {
      std::fprintf(stderr, "softgpu-fatbin: %s is no PTX\n", paths[i].c_str());
      return 1;
    }
    entries.push_back({static_cast<unsigned>(header->architecture), texts[i], static_cast<unsigned>(header->version)});
  }
  const auto container = softgpu::write_fatbin(entries, compression);
  std::ofstream file(output, std::ios::binary);
  file.write(reinterpret_cast<const char*>(container.data()), static_cast<std::streamsize>(container.size()));
  file.close();
  if (!file) std::fprintf(stderr, "softgpu-fatbin: cannot write %s\n", output.c_str());
  return file ? 0 : 1;
}
