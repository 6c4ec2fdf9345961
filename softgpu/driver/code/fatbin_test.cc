// The reader of fat binaries, on containers that the writer made and on what is left of them when they are damaged.
#include "softgpu/driver/code/fatbin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace {

using softgpu::Compression;
using softgpu::FatbinEntry;
using softgpu::PtxForArchitecture;

constexpr std::size_t kEntry = softgpu::kFatbinHeaderBytes;  // offset of the first entry
constexpr std::size_t kPtxHeader = 80;

std::string long_text() {
  std::string text = ".version 7.0\n.target sm_70\n";
  for (int i = 0; i < 500; ++i) text += "// line " + std::to_string(i) + "\n";
  return text;
}

template <typename Field>
void set(std::vector<std::byte>& bytes, std::size_t offset, Field value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

class FatbinText : public ::testing::TestWithParam<Compression> {};

TEST_P(FatbinText, ComesBackForEachArchitecture) {
  const std::string text = long_text();
  const PtxForArchitecture texts[] = {{70, text}, {90, ".version 8.0"}, {75, ""}};
  const auto container = softgpu::write_fatbin(texts, GetParam());
  const auto entries = softgpu::read_fatbin(container);
  ASSERT_TRUE(entries) << entries.error();
  ASSERT_EQ(entries->size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*entries)[i].kind, FatbinEntry::Kind::kPtx);
    EXPECT_EQ((*entries)[i].architecture, texts[i].architecture);
    const auto read = softgpu::ptx_text((*entries)[i]);
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(*read, texts[i].text);
  }
}

TEST_P(FatbinText, EveryTruncationIsRefused) {
  const std::string text = long_text();
  const PtxForArchitecture texts[] = {{70, text}};
  const auto whole = softgpu::write_fatbin(texts, GetParam());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(softgpu::read_fatbin(part)) << size;
  }
}

TEST_P(FatbinText, DamageIsAnErrorOrAnotherTextNeverMore) {
  const std::string text = long_text();
  const PtxForArchitecture texts[] = {{70, text}};
  const auto whole = softgpu::write_fatbin(texts, GetParam());
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    auto damaged = whole;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    const auto entries = softgpu::read_fatbin(damaged);
    if (!entries) continue;
    for (const FatbinEntry& entry : *entries) {
      ASSERT_GE(entry.payload.data(), damaged.data());
      ASSERT_LE(entry.payload.data() + entry.payload.size(), damaged.data() + damaged.size());
      if (entry.text_bytes > (1 << 20)) continue;
      const auto read = softgpu::ptx_text(entry);
      if (read) {
        EXPECT_LE(read->size(), entry.text_bytes);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compressions, FatbinText,
                         ::testing::Values(Compression::kNone, Compression::kLz4, Compression::kZstd));

// An entry of a container as nvcc 13.0 lays it out, field by field.
struct Laid {
  std::uint64_t flags = 0;
  std::uint32_t padded_bytes = 0, compressed_bytes = 0, text_bytes = 0;
};

template <typename Field>
void put(std::vector<std::byte>& bytes, std::initializer_list<Field> fields) {
  for (const Field field : fields) {
    bytes.resize(bytes.size() + sizeof field);
    set(bytes, bytes.size() - sizeof field, field);
  }
}

std::vector<std::byte> laid_out(const Laid& entry) {
  std::vector<std::byte> bytes;
  put<std::uint32_t>(bytes, {0xBA55ED50});
  put<std::uint16_t>(bytes, {1, 16});
  put<std::uint64_t>(bytes, {kPtxHeader + entry.padded_bytes});
  put<std::uint16_t>(bytes, {1, 0x101});  // PTX
  put<std::uint32_t>(bytes, {kPtxHeader, entry.padded_bytes, 0, entry.compressed_bytes, 64});
  put<std::uint16_t>(bytes, {0, 9});  // PTX 9.0
  put<std::uint32_t>(bytes, {90, 0, 0});
  put<std::uint64_t>(bytes, {entry.flags, 0, entry.text_bytes});
  put<std::uint32_t>(bytes, {64 + 8, 0, 0, 0});  // where the options are, and none
  return bytes;
}

TEST(Fatbin, HeadersAreThoseOfNvcc) {
  const std::string text = ".version 9.0\n.target sm_90\n" + std::string(3000, '\n');  // 3,027 bytes and a NUL
  const PtxForArchitecture texts[] = {{90, text, 90}};
  const auto expect = [&](Compression compression, Laid want) {
    const auto container = softgpu::write_fatbin(texts, compression);
    if (compression == Compression::kNone) {
      want.padded_bytes = 3032;
    } else {
      std::memcpy(&want.compressed_bytes, container.data() + kEntry + 16, 4);
      EXPECT_GT(want.compressed_bytes, 0U);
      EXPECT_LT(want.compressed_bytes, text.size());
      want.padded_bytes = (want.compressed_bytes + 7) / 8 * 8;
    }
    const auto header = laid_out(want);
    ASSERT_EQ(container.size(), header.size() + want.padded_bytes);
    EXPECT_TRUE(std::equal(header.begin(), header.end(), container.begin()));
  };
  expect(Compression::kNone, {.flags = 0x11});
  expect(Compression::kLz4, {.flags = 0x2011, .text_bytes = 3028});
  expect(Compression::kZstd, {.flags = 0x8011, .text_bytes = 3028});
}

TEST(Fatbin, ATextOfTheSmallestHeaderIsRead) {
  auto container = laid_out({.flags = 0x11, .padded_bytes = 8});
  container.erase(container.begin() + kEntry + 64, container.begin() + kEntry + kPtxHeader);
  set<std::uint64_t>(container, 8, 64 + 8);
  set<std::uint32_t>(container, kEntry + 4, 64);
  for (const char letter : {'p', 't', 'x', '\0', '\0', '\0', '\0', '\0'}) {
    container.push_back(static_cast<std::byte>(letter));
  }
  const auto entries = softgpu::read_fatbin(container);
  ASSERT_TRUE(entries) << entries.error();
  EXPECT_EQ(softgpu::ptx_text(entries->front()).value(), "ptx");
}

TEST(Fatbin, OtherKindsAreNamedAndNotRead) {
  const PtxForArchitecture texts[] = {{70, "x"}, {70, "y"}};
  auto container = softgpu::write_fatbin(texts, Compression::kNone);
  set<std::uint16_t>(container, kEntry, 2);
  set<std::uint16_t>(container, kEntry + kPtxHeader + 8, 99);
  const auto entries = softgpu::read_fatbin(container);
  ASSERT_TRUE(entries);
  EXPECT_EQ((*entries)[0].kind, FatbinEntry::Kind::kMachineCode);
  EXPECT_EQ((*entries)[1].kind, FatbinEntry::Kind::kOther);
}

TEST(Fatbin, ALongerEntryHeaderIsSkipped) {
  const PtxForArchitecture texts[] = {{120, "newer"}};
  auto container = softgpu::write_fatbin(texts, Compression::kNone);
  container.insert(container.begin() + kEntry + kPtxHeader, 16, std::byte{0xFF});
  set<std::uint32_t>(container, kEntry + 4, kPtxHeader + 16);
  set<std::uint64_t>(container, 8, container.size() - kEntry);
  const auto entries = softgpu::read_fatbin(container);
  ASSERT_TRUE(entries) << entries.error();
  EXPECT_EQ(softgpu::ptx_text(entries->front()).value(), "newer");
}

TEST(Fatbin, ClaimsBeyondTheContainerAreRefusedByName) {
  const PtxForArchitecture texts[] = {{70, "text"}};
  const auto whole = softgpu::write_fatbin(texts, Compression::kLz4);
  const auto error_with = [&](std::size_t offset, auto value) {
    auto damaged = whole;
    set(damaged, offset, value);
    const auto entries = softgpu::read_fatbin(damaged);
    return entries ? std::string() : entries.error();
  };
  EXPECT_NE(error_with(0, std::uint32_t{1}).find("no fat binary"), std::string::npos);
  EXPECT_NE(error_with(6, std::uint16_t{8}).find("less than 16"), std::string::npos);
  EXPECT_NE(error_with(8, ~std::uint64_t{0}).find("4 GiB"), std::string::npos);
  EXPECT_NE(error_with(kEntry + 4, std::uint32_t{63}).find("63 bytes"), std::string::npos);
  EXPECT_NE(error_with(kEntry + 4, ~std::uint32_t{0}).find("header of"), std::string::npos);
  EXPECT_NE(error_with(kEntry + 8, ~std::uint64_t{0}).find("payload is cut off"), std::string::npos);
  EXPECT_NE(error_with(kEntry + 16, std::uint32_t{999}).find("compressed bytes"), std::string::npos);
  EXPECT_NE(error_with(kEntry + 56, ~std::uint64_t{0}).find("a text of"), std::string::npos);
}

TEST(Fatbin, ATextThatIsNotCompressedAsSaidIsRefused) {
  const PtxForArchitecture texts[] = {{70, "text that is long enough to be compressed, compressed, compressed"}};
  for (const Compression compression : {Compression::kLz4, Compression::kZstd}) {
    auto container = softgpu::write_fatbin(texts, compression);
    set(container, kEntry + kPtxHeader, ~std::uint64_t{0});
    EXPECT_FALSE(softgpu::ptx_text(softgpu::read_fatbin(container)->front()));
    container = softgpu::write_fatbin(texts, compression);
    set(container, kEntry + 56, std::uint64_t{5});  // less room than the text needs
    EXPECT_FALSE(softgpu::ptx_text(softgpu::read_fatbin(container)->front()));
  }
}

// What the fuzzer found worth keeping.
TEST(Fatbin, TheFuzzersCorpusIsReadOrRefused) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(SOFTGPU_FATBIN_CORPUS)) {
    std::ifstream stream(file.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const auto* first = reinterpret_cast<const std::byte*>(content.data());
    const std::vector<std::byte> bytes(first, first + content.size());
    ++files;
    const auto entries = softgpu::read_fatbin(bytes);
    if (!entries) {
      EXPECT_FALSE(entries.error().empty());
      continue;
    }
    for (const FatbinEntry& entry : *entries) {
      if (entry.kind != FatbinEntry::Kind::kPtx || entry.text_bytes > (1 << 20)) continue;
      const auto text = softgpu::ptx_text(entry);
      EXPECT_TRUE(!text || text->size() <= entry.text_bytes);
    }
  }
  EXPECT_GT(files, 10);
}

}  // namespace
