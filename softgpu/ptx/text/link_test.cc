// Linking texts, each test by what the linked module then contains and computes.
#include "softgpu/ptx/text/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "softgpu/ptx/text/header.h"
#include "softgpu/ptx/text/parser.h"

namespace softgpu::ptx {
namespace {

using ::testing::HasSubstr;

LinkOutput link_bodies(const std::vector<std::string>& bodies) {
  static std::vector<std::string> texts;
  texts.clear();
  for (const std::string& body : bodies) texts.push_back(".version 7.5\n.target sm_75\n.address_size 64\n" + body);
  std::vector<LinkInput> inputs;
  for (const std::string& text : texts) inputs.push_back({inputs.empty() ? "first" : "second", text});
  return link(inputs);
}

constexpr const char* kCaller =
    ".extern .func (.param .b32 r) f(.param .b32 x);\n.extern .global .b32 total;\n"
    ".visible .entry k() { .reg .b64 %d; mov.u64 %d, total; mov.u64 %d, f; ret; }\n";

TEST(Link, AnExternIsTheDefinitionOfAnotherText) {
  const LinkOutput out = link_bodies(
      {kCaller, ".visible .global .b32 total = 7;\n.visible .func (.param .b32 r) f(.param .b32 x) { ret; }\n"});
  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.text.find(".extern"), std::string::npos);
  const ParseResult parsed = parse(out.text);
  ASSERT_FALSE(parsed.error) << parsed.error->message << "\n" << out.text;
  ASSERT_EQ(parsed.module.variables.size(), 1U);
  EXPECT_EQ(parsed.module.variables[0].initialisers[0].bits, 7U);
  EXPECT_EQ(parsed.module.functions.size(), 3U);  // the declaration, f, k
}

TEST(Link, AnUndefinedNameIsAnErrorOnlyWhenItIsUsed) {
  EXPECT_THAT(link_bodies({kCaller}).error, HasSubstr("Undefined reference to '"));
  const LinkOutput unused = link_bodies({".extern .func f();\n.extern .global .b32 v;\n.entry k() { ret; }\n"});
  EXPECT_EQ(unused.error, "");
  EXPECT_EQ(unused.text.find("f()"), std::string::npos);
}

TEST(Link, WhatTheMachineBringsAndDynamicSharedMemoryStayDeclared) {
  const std::string body =
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
      ".extern .shared .align 16 .b8 dynamic[];\n";
  const LinkOutput out = link_bodies({body + ".entry a() { .reg .b64 %d; mov.u64 %d, dynamic; ret; }",
                                      body + ".entry b() { .reg .b64 %d; mov.u64 %d, dynamic; ret; }"});
  ASSERT_EQ(out.error, "");
  const ParseResult parsed = parse(out.text);
  ASSERT_FALSE(parsed.error) << parsed.error->message;
  EXPECT_EQ(parsed.module.variables.size(), 1U);
}

TEST(Link, TwoDefinitionsAreRefusedUnlessWeak) {
  const std::string strong = ".visible .global .b32 v = 1;\n";
  const std::string weak = ".weak .global .b32 v = 2;\n";
  EXPECT_THAT(link_bodies({strong, strong}).error, HasSubstr("Multiple definition of 'v' in 'second'"));
  for (const auto& bodies : {std::vector{weak, strong}, std::vector{strong, weak}}) {
    const LinkOutput out = link_bodies(bodies);
    ASSERT_EQ(out.error, "");
    const ParseResult parsed = parse(out.text);
    ASSERT_EQ(parsed.module.variables.size(), 1U);
    EXPECT_EQ(parsed.module.variables[0].initialisers[0].bits, 1U);
  }
  EXPECT_EQ(parse(link_bodies({weak, weak}).text).module.variables.size(), 1U);
}

TEST(Link, PrivateNamesOfTwoTextsStayApart) {
  const LinkOutput out = link_bodies({".global .b32 v = 1;\n.entry a() { .reg .b64 %d; mov.u64 %d, v; ret; }",
                                      ".global .b32 v = 2;\n.entry b() { .reg .b64 %d; mov.u64 %d, v; ret; }"});
  ASSERT_EQ(out.error, "");
  EXPECT_THAT(out.text, HasSubstr("mov.u64 %d, v;"));
  EXPECT_THAT(out.text, HasSubstr("mov.u64 %d, v__linked1;"));
  EXPECT_THAT(out.text, HasSubstr(".global .b32 v__linked1 = 2;"));
}

TEST(Link, TheHeaderIsTheNewestAndDebugInformationGoes) {
  const LinkInput inputs[] = {
      {"a", ".version 6.3\n.target sm_80, debug\n.address_size 64\n.file 1 \"a.cu\"\n.entry a() { ret; }"},
      {"b", ".version 8.1 .target sm_70\n.entry b() { .loc 1 2 3\n ret; }\n.section .debug_loc { .b8 0 }\nL:\n"}};
  const LinkOutput out = link(inputs);
  ASSERT_EQ(out.error, "");
  const auto header = read_header(out.text);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->version, 81);
  EXPECT_EQ(header->architecture, 80);
  EXPECT_EQ(parse(out.text).module.functions.size(), 2U);
}

TEST(Link, BrokenTextsAreRefusedWithTheirName) {
  EXPECT_THAT(link_bodies({"", ".entry k() { ret;"}).error, HasSubstr("second, line"));
  EXPECT_THAT(link_bodies({"+"}).error, HasSubstr("expected a directive"));
  const LinkInput no_text[] = {{"binary", "\x7f"}};
  EXPECT_THAT(link(no_text).error, HasSubstr("binary: no PTX text"));
}

TEST(Header, SaysWhatTheCodeRunsOn) {
  const auto header = [](const char* text) { return read_header(text).value_or(Header{}); };
  EXPECT_EQ(header("// made by\n/* x */ .version 7.5\n.target sm_75, debug\n").architecture, 75);
  EXPECT_EQ(header(".version 7.5 .target sm_75").version, 75);
  EXPECT_EQ(header(".version 8.0 .target sm_90a").variant, 'a');
  EXPECT_FALSE(read_header(".target sm_75 .version 7.5"));
  EXPECT_FALSE(read_header("hello"));
  EXPECT_FALSE(read_header(".version seven .target sm_75"));
  EXPECT_FALSE(read_header(".version 7.5 .target gfx90"));
  EXPECT_FALSE(read_header(".version 527777777.7 .target sm_75"));
  EXPECT_FALSE(read_header(".version 7.10 .target sm_75"));
  EXPECT_FALSE(read_header(".version 7.5 .target sm_-75"));
  EXPECT_TRUE(runs_on({75, 75, 0}, 80));
  EXPECT_FALSE(runs_on({75, 75, 0}, 70));
  EXPECT_TRUE(runs_on({80, 90, 'a'}, 90));
  EXPECT_FALSE(runs_on({80, 90, 'a'}, 100));
  EXPECT_TRUE(runs_on({88, 100, 'f'}, 103));
  EXPECT_FALSE(runs_on({88, 100, 'f'}, 120));
}

TEST(Header, NamesManagedVariables) {
  const auto names = managed_variables(
      ".version 7.5 .target sm_75\n.visible .global .attribute(.managed) .align 4 .b32 shared_count;\n"
      ".global .b32 other;\n.global .attribute(.managed) .b8 bytes[4];");
  EXPECT_THAT(names, ::testing::ElementsAre("shared_count", "bytes"));
}

}  // namespace
}  // namespace softgpu::ptx
