// Packets between the node and programs of pipelines. Planted and caught: a text that is not cut; bytes of a stranger that are not printable.
#include "wire/program_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead::wire {
namespace {

using Kind = ProgramSaid::Kind;
using namespace std::string_literals;

TEST(ProgramFrames, AreTheBytesThatTheHeadOfTheHeaderSays) {
  EXPECT_EQ(encode_program_call(5, {{7, 2}}, {{9, 0}}),
            "r\5\0\0\0\0\0\0\0\1\0\1\0\7\0\0\0\0\0\0\0\2\0\0\0\11\0\0\0\0\0\0\0\0\0\0\0"s);
  EXPECT_EQ(encode_close_ring(258), "c\2\1\0\0\0\0\0\0"s);
  // Two slots of 5000 bytes: the words take a page, each slot two.
  EXPECT_EQ(encode_open_ring(1, {2, 5000}),
            "o\1\0\0\0\0\0\0\0\2\0\0\0"s + "\210\23\0\0\0\0\0\0"s + "\0\20\0\0\0\0\0\0"s + "\0\40\0\0\0\0\0\0"s);
}

TEST(ProgramFrames, SaidIsReadOrRefused) {
  EXPECT_EQ(decode_program_said("R").value(), (ProgramSaid{.kind = Kind::kReady, .call = 0, .text = {}}));
  EXPECT_EQ(decode_program_said("D\2\1\0\0\0\0\0\0"s).value(),
            (ProgramSaid{.kind = Kind::kDone, .call = 258, .text = {}}));
  EXPECT_EQ(decode_program_said("E\1\0\0\0\0\0\0\0no \xff\n"s).value(),
            (ProgramSaid{.kind = Kind::kFailed, .call = 1, .text = "no ??"}));
  EXPECT_EQ(decode_program_said("F" + std::string(100'000, 'x'))->text.size(), kMaxProgramText);
  for (const std::string& bad : {""s, "X"s, "R!"s, "D"s, "D\1\0\0\0\0\0\0\0\0"s, "E\1"s, "r\1"s}) {
    EXPECT_EQ(decode_program_said(bad).error().code, Errc::kCorrupt) << bad;
  }
}

}  // namespace
}  // namespace fairlead::wire
