#include "runtime/device_server/variable_bytes.h"

#include <gtest/gtest.h>

#include <cstring>

namespace fairlead {
namespace {

std::vector<std::byte> image_of(const VariablePieces& pieces, std::size_t bytes) {
  std::vector<std::byte> image(bytes);
  for (const auto& piece : pieces) std::memcpy(image.data() + piece.offset, piece.bytes.data(), piece.bytes.size());
  return image;
}

TEST(VariableBytes, ZerosTakeNoRoom) {
  EXPECT_TRUE(pieces_of(std::vector<std::byte>(1 << 20)).empty());
  std::vector<std::byte> image(1 << 20);
  image[70] = std::byte{7};
  image[(1 << 20) - 1] = std::byte{9};
  const VariablePieces pieces = pieces_of(image);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].offset, 64u);
  EXPECT_EQ(pieces[0].bytes.size(), 64u);
  EXPECT_EQ(image_of(pieces, image.size()), image);
}

TEST(VariableBytes, EverySizeAndPlaceComesBackAlsoWhenJoined) {
  for (std::size_t size = 1; size < 600; ++size) {
    std::vector<std::byte> image(size);
    for (std::size_t at = 0; at < size; at += 137) image[at] = std::byte{1};
    const VariablePieces pieces = pieces_of(image);
    EXPECT_EQ(image_of(pieces, size), image);
    for (const std::uint64_t most : {0, 100, 300, 1000}) {
      const auto fewer = joined(pieces, size, most);
      ASSERT_TRUE(fewer);
      EXPECT_LE(fewer->size(), pieces.size());
      EXPECT_EQ(image_of(*fewer, size), image);
    }
    EXPECT_EQ(joined(pieces, size, 1000)->size(), 1u);
  }
}

TEST(VariableBytes, PiecesThatAreNotInTheirPlaceAreRefused) {
  EXPECT_FALSE(joined({{.offset = 8, .bytes = "123456789"}}, 16, 64));
  EXPECT_FALSE(joined({{.offset = ~std::uint64_t{0}, .bytes = "1"}}, 16, 64));
  EXPECT_FALSE(joined({{.offset = 8, .bytes = "1234"}, {.offset = 11, .bytes = "1"}}, 16, 64));
  EXPECT_TRUE(joined({{.offset = 8, .bytes = "12345678"}}, 16, 64));
}

}  // namespace
}  // namespace fairlead
