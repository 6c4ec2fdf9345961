// Kernels of a cubin: an ELF64 file of machine 190. A kernel is a function symbol whose `other` has bit 0x10. What it is
// given is in section .nv.info.NAME, a list of attributes, each a format byte, an attribute byte and two bytes of value, or
// for format 4 of length:
//
//   04 17 0c 00  00 00 00 00  03 00 10 00  00 f0 21 00     parameter 3 at 16, 0x21f000 >> 18 = 8 bytes
//   04 45 0c 00  00 00 00 00  01 00 20 4e  08 00 00 00     the same where parameters have more than 4 KiB: 1 at 20000, 8
//   04 05 0c 00  00 01 00 00  02 00 00 00  01 00 00 00     at most 256 * 2 * 1 threads; 0x10: exactly so many
//   03 19 18 00                                            24 bytes of parameters
//
// The size of section .nv.shared.NAME is its static shared memory. From sm_90 on 1 KiB of it is the system's, which no limit
// of a device counts.
#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <unordered_map>

#include "gpu/image_formats.h"

namespace fairlead {
namespace {

constexpr std::string_view kMagic = "\177ELF";
constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kSymbolTable = 2;  // SHT_SYMTAB
constexpr std::uint32_t kNoBits = 8;       // SHT_NOBITS
constexpr std::uint8_t kFunction = 2;      // STT_FUNC
constexpr std::uint8_t kEntryPoint = 0x10;
constexpr std::uint8_t kAbiOfOlderTools = 0x33;
constexpr std::uint32_t kFirstWithReservedShared = 90;
constexpr std::uint64_t kReservedSharedBytes = 1024;
constexpr std::string_view kInfoPrefix = ".nv.info.";
constexpr std::string_view kSharedPrefix = ".nv.shared.";

struct FileHeader {
  std::array<char, 4> magic;
  std::uint8_t file_class, data, version, abi;
  std::array<std::uint8_t, 8> padding;
  std::uint16_t type, machine;
  std::uint32_t file_version;
  std::uint64_t entry, program_offset, section_offset;
  std::uint32_t flags;
  std::uint16_t header_bytes, program_bytes, programs, section_bytes, sections, names_index;
};
static_assert(sizeof(FileHeader) == 64);

struct SectionHeader {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, bytes;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_bytes;
};
static_assert(sizeof(SectionHeader) == 64);

struct SymbolEntry {
  std::uint32_t name;
  std::uint8_t info, other;
  std::uint16_t section;
  std::uint64_t value, bytes;
};
static_assert(sizeof(SymbolEntry) == 24);

enum Attribute : std::uint8_t {
  kMaxThreads = 0x05,
  kRequiredThreads = 0x10,
  kParameter = 0x17,
  kParameterBytes = 0x19,
  kLargeParameter = 0x45,
};
constexpr std::uint8_t kFormatWithLength = 4;

class CubinReader {
 public:
  explicit CubinReader(std::string_view image) : image_(image), attribute_bytes_left_(image.size()) {}

  Result<KernelImage> read() {
    read_header();
    read_sections();
    for (std::size_t i = 0; ok() && i < sections_.size(); ++i) {
      if (sections_[i].type == kSymbolTable) read_symbols(sections_[i]);
    }
    if (!ok()) return fail(status_.error());
    KernelImage image{.format = ImageFormat::kCubin, .kernels = std::move(kernels_), .targets = {target_}};
    std::sort(image.kernels.begin(), image.kernels.end(),
              [](const KernelSignature& a, const KernelSignature& b) { return a.name < b.name; });
    return image;
  }

 private:
  bool ok() const { return status_.has_value(); }
  template <typename... Args>
  void refuse(fmt::format_string<Args...> format, Args&&... args) {
    if (ok()) status_ = fail(Errc::kInvalidArgument, "cubin: {}", fmt::format(format, std::forward<Args>(args)...));
  }

  // ---- bytes

  bool is_inside(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= image_.size() && bytes <= image_.size() - offset;
  }
  // REQUIRES: is_inside().
  template <typename T>
  T at(std::uint64_t offset) const {
    T value;
    std::memcpy(&value, image_.data() + offset, sizeof value);
    return value;
  }
  std::string_view contents(const SectionHeader& section) const {
    if (section.type == kNoBits || !is_inside(section.offset, section.bytes)) return {};
    return image_.substr(section.offset, section.bytes);
  }
  // Names longer than a kernel's may be are cut: each is looked at once for each section or symbol that refers to it.
  static std::string_view string_at(std::string_view table, std::uint32_t offset) {
    if (offset >= table.size()) return {};
    const std::string_view text = table.substr(offset, kMaxKernelNameLength + 64);
    return text.substr(0, text.find('\0'));
  }

  // ---- the file

  void read_header() {
    if (image_.size() < sizeof(FileHeader)) return refuse("its {} bytes are less than a header", image_.size());
    header_ = at<FileHeader>(0);
    if (header_.file_class != 2 || header_.data != 1) return refuse("it is no ELF file of 64 bits, little endian");
    if (header_.machine != kMachineCuda) {
      return refuse("machine is {}; code of NVIDIA GPUs has {}", header_.machine, kMachineCuda);
    }
    if (header_.section_bytes != sizeof(SectionHeader)) {
      return refuse("section headers of {} bytes; they have {}", header_.section_bytes, sizeof(SectionHeader));
    }
    target_ = header_.abi == kAbiOfOlderTools ? header_.flags & 0xff : header_.flags >> 8 & 0xff;
  }

  void read_sections() {
    if (!ok()) return;
    const std::uint64_t bytes = std::uint64_t{header_.sections} * sizeof(SectionHeader);
    if (!is_inside(header_.section_offset, bytes)) {
      return refuse("{} section headers at byte {}; the file has {} bytes", header_.sections, header_.section_offset,
                    image_.size());
    }
    for (std::uint64_t i = 0; i < header_.sections; ++i) {
      sections_.push_back(at<SectionHeader>(header_.section_offset + i * sizeof(SectionHeader)));
    }
    if (header_.names_index >= sections_.size()) {
      return refuse("the names are in section {}; there are {}", header_.names_index, sections_.size());
    }
    const std::string_view names = contents(sections_[header_.names_index]);
    for (std::size_t i = 0; i < sections_.size(); ++i) by_name_.emplace(string_at(names, sections_[i].name), i);
  }

  void read_symbols(const SectionHeader& table) {
    const std::string_view symbols = contents(table);
    if (symbols.size() != table.bytes || table.link >= sections_.size()) {
      return refuse("the symbol table's {} bytes at byte {} or its names in section {} are not there", table.bytes,
                    table.offset, table.link);
    }
    const std::string_view names = contents(sections_[table.link]);
    for (std::size_t offset = 0; ok() && symbols.size() - offset >= sizeof(SymbolEntry);
         offset += sizeof(SymbolEntry)) {
      const auto symbol = at<SymbolEntry>(table.offset + offset);
      if ((symbol.info & 0xf) != kFunction || (symbol.other & kEntryPoint) == 0) continue;
      const std::string_view name = string_at(names, symbol.name);
      if (name.empty() || name.size() > kMaxKernelNameLength) {
        return refuse("a kernel's name has {} bytes; it must have 1 to {}", name.size(), kMaxKernelNameLength);
      }
      if (known_.insert(name).second) read_kernel(name);
    }
  }

  // ---- a kernel

  const SectionHeader* find(std::string_view prefix, std::string_view name) const {
    const std::string wanted = std::string(prefix).append(name);
    const auto found = by_name_.find(wanted);
    return found == by_name_.end() ? nullptr : &sections_[found->second];
  }

  void read_kernel(std::string_view name) {
    KernelSignature kernel{.name = std::string(name)};
    if (const SectionHeader* info = find(kInfoPrefix, name)) read_attributes(*info, kernel);
    if (const SectionHeader* shared = find(kSharedPrefix, name)) {
      const std::uint64_t reserved = target_ >= kFirstWithReservedShared ? kReservedSharedBytes : 0;
      kernel.static_shared_bytes = shared->bytes - std::min(shared->bytes, reserved);
    }
    kernels_.push_back(std::move(kernel));
  }

  void read_attributes(const SectionHeader& section, KernelSignature& kernel) {
    const std::string_view attributes = contents(section);
    // Sections that overlap could make a small file a long work.
    if (attributes.size() != section.bytes || section.bytes > attribute_bytes_left_) {
      return refuse_info(kernel, "its {} bytes at byte {} are not in the file, or another's", section.bytes,
                         section.offset);
    }
    attribute_bytes_left_ -= section.bytes;
    ordinals_.clear();
    for (std::uint64_t offset = 0; ok() && offset < attributes.size();) {
      if (attributes.size() - offset < 4) return refuse_info(kernel, "byte {}: an attribute is cut off", offset);
      const auto format = static_cast<std::uint8_t>(attributes[offset]);
      const auto attribute = static_cast<std::uint8_t>(attributes[offset + 1]);
      const auto value = at<std::uint16_t>(section.offset + offset + 2);
      const std::string_view payload = attributes.substr(offset + 4, format == kFormatWithLength ? value : 0);
      if (format == 0 || format > kFormatWithLength || (format == kFormatWithLength && payload.size() != value)) {
        return refuse_info(kernel, "byte {}: attribute 0x{:02x} of format {} is cut off or unknown", offset, attribute,
                           format);
      }
      read_attribute(attribute, payload, kernel);
      offset += 4 + payload.size();
    }
    check_parameters(kernel);
  }

  void read_attribute(std::uint8_t attribute, std::string_view payload, KernelSignature& kernel) {
    const bool is_known = attribute == kMaxThreads || attribute == kRequiredThreads || attribute == kParameter ||
                          attribute == kLargeParameter;
    if (!is_known) return;
    std::array<std::uint32_t, 3> words{};
    if (payload.size() != sizeof words) {
      return refuse_info(kernel, "attribute 0x{:02x} has {} bytes; it must have {}", attribute, payload.size(),
                         sizeof words);
    }
    std::memcpy(words.data(), payload.data(), sizeof words);
    if (attribute == kMaxThreads) {
      kernel.max_threads = volume(words);
    } else if (attribute == kRequiredThreads) {
      kernel.required_threads = words;
    } else {
      const std::uint32_t bytes = attribute == kParameter ? words[2] >> 18 : words[2] & 0xffff;
      ordinals_.push_back(words[1] & 0xffff);
      kernel.parameters.push_back({.offset = words[1] >> 16, .bytes = bytes});
    }
  }

  // They come last to first; each must be there once.
  void check_parameters(KernelSignature& kernel) {
    std::vector<KernelParameter> sorted(ordinals_.size());
    std::vector<bool> is_there(ordinals_.size());
    for (std::size_t i = 0; i < ordinals_.size(); ++i) {
      const std::uint32_t ordinal = ordinals_[i];
      if (ordinal >= sorted.size() || is_there[ordinal]) {
        return refuse_info(kernel, "parameter {} is there twice, or others are missing", ordinal);
      }
      is_there[ordinal] = true;
      sorted[ordinal] = kernel.parameters[i];
    }
    kernel.parameters = std::move(sorted);
  }

  template <typename... Args>
  void refuse_info(const KernelSignature& kernel, fmt::format_string<Args...> format, Args&&... args) {
    refuse("section {}{}: {}", kInfoPrefix, kernel.name, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view image_;
  std::uint64_t attribute_bytes_left_;
  Status status_;
  FileHeader header_{};
  std::uint32_t target_ = 0;
  std::vector<SectionHeader> sections_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::set<std::string_view> known_;
  std::vector<std::uint32_t> ordinals_;  // of the kernel's parameters, as they are read
  std::vector<KernelSignature> kernels_;
};

}  // namespace

bool is_cubin(std::string_view image) {
  return image.starts_with(kMagic);
}

Result<KernelImage> read_cubin(std::string_view image) {
  return CubinReader(image).read();
}

}  // namespace fairlead
