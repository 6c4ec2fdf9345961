#include "base/digest.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

// FIPS 180-2, appendix B.1; `printf abc | b2sum -l 256`.
TEST(DigestTest, KnownAnswers) {
  EXPECT_EQ(to_hex(as_text(sha256("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(as_text(blake2b("abc"))), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(to_hex(as_text(sha256(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(DigestTest, PiecesAreTheWhole) {
  const std::string text(1000, 'x');
  EXPECT_EQ(Sha256().add(text.substr(0, 1)).add("").add(text.substr(1)).finish(), sha256(text));
  EXPECT_EQ(Blake2b().add(text.substr(0, 999)).add(text.substr(999)).finish(), blake2b(text));
  EXPECT_NE(blake2b(text), blake2b(text + "x"));
}

TEST(DigestTest, HexIsOfAnyBytes) {
  EXPECT_EQ(to_hex(""), "");
  EXPECT_EQ(to_hex(std::string_view("\0\xff\x0a", 3)), "00ff0a");
}

}  // namespace
}  // namespace fairlead
