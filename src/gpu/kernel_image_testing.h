// Images for tests: cubins and fat binaries put together byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::testing {

template <typename T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// An ELF64 file as ptxas writes it: names, then symbols, then what is added.
class CubinBuilder {
 public:
  struct Section {
    std::string name;
    std::uint32_t type = 1;
    std::string contents;
    std::uint64_t bytes = 0;  // where it has no contents
    std::uint32_t link = 0;
  };

  void add_section(Section section) { sections_.push_back(std::move(section)); }
  void add_symbol(std::string_view name, std::uint8_t info = 0x12, std::uint8_t other = 0x10) {
    symbols_ += raw(static_cast<std::uint32_t>(names_.size())) + raw(info) + raw(other) + std::string(18, '\0');
    names_ += std::string(name) + '\0';
  }
  // A kernel with these attributes and this much shared memory.
  void add_kernel(const std::string& name, const std::string& attributes, std::uint64_t shared_bytes = 0) {
    add_symbol(name);
    add_section({.name = ".nv.info." + name, .contents = attributes});
    if (shared_bytes != 0) add_section({.name = ".nv.shared." + name, .type = 8, .bytes = shared_bytes});
  }

  std::uint32_t flags = 0x500550;  // sm_80
  std::uint8_t abi = 0x33;
  std::uint16_t machine = 190;

  std::string build() const {
    std::vector<Section> sections{{.type = 0}, {.name = ".shstrtab", .type = 3}};
    sections.push_back({.name = ".strtab", .type = 3, .contents = names_});
    sections.push_back({.name = ".symtab", .type = 2, .contents = symbols_, .link = 2});
    sections.insert(sections.end(), sections_.begin(), sections_.end());
    std::string& names = sections[1].contents;
    for (const Section& section : sections) names += section.name + '\0';
    std::string body;
    std::string headers;
    std::uint32_t name = 0;
    for (const Section& section : sections) {
      const std::uint64_t bytes = section.bytes != 0 ? section.bytes : section.contents.size();
      headers += raw(name) + raw(section.type) + std::string(16, '\0') + raw(64 + body.size()) + raw(bytes) +
                 raw(section.link) + std::string(20, '\0');
      name += static_cast<std::uint32_t>(section.name.size() + 1);
      body += section.contents;
    }
    const std::string padding(8, '\0');
    return "\177ELF\x02\x01\x01" + raw(abi) + padding + raw<std::uint16_t>(2) + raw(machine) + raw(1) +
           std::string(16, '\0') + raw(64 + body.size()) + raw(flags) + raw<std::uint16_t>(64) + std::string(4, '\0') +
           raw<std::uint16_t>(64) + raw(static_cast<std::uint16_t>(sections.size())) + raw<std::uint16_t>(1) + body +
           headers;
  }

 private:
  std::vector<Section> sections_;
  std::string names_ = std::string(1, '\0');
  std::string symbols_ = std::string(24, '\0');
};

inline std::string parameter_attribute(std::uint16_t ordinal, std::uint16_t offset, std::uint32_t bytes) {
  return "\x04\x17\x0c" + std::string(5, '\0') + raw(ordinal) + raw(offset) + raw(bytes << 18 | 0x1f000);
}
inline std::string threads_attribute(char attribute, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return std::string("\x04") + attribute + raw<std::uint16_t>(12) + raw(x) + raw(y) + raw(z);
}

// An entry of a fat binary; flags 0x2000 is LZ4, 0x8000 zstd.
inline std::string fatbin_entry(std::uint16_t kind, std::string payload, std::uint64_t flags = 0,
                                std::uint64_t plain_bytes = 0) {
  const auto compressed = static_cast<std::uint32_t>(plain_bytes != 0 ? payload.size() : 0);
  payload.resize((payload.size() + 7) / 8 * 8);
  return raw(kind) + raw<std::uint16_t>(0x101) + raw<std::uint32_t>(64) + raw<std::uint64_t>(payload.size()) +
         raw(compressed) + std::string(20, '\0') + raw(flags) + std::string(8, '\0') + raw(plain_bytes) + payload;
}
inline std::string fatbin(const std::string& entries) {
  return raw(0xBA55ED50U) + raw<std::uint16_t>(1) + raw<std::uint16_t>(16) + raw<std::uint64_t>(entries.size()) +
         entries;
}

}  // namespace fairlead::testing
