#include "node/peers/peer_messages.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "node/peers/fields.h"

namespace fairlead {
namespace {

TEST(Fields, ComeBackAsTheyWereWrittenWhateverIsInThem) {
  const std::string odd("a:1\0b5:x\n", 9);
  const std::string text =
      FieldWriter().text('a', odd).number('n', -7).flag('f', true).flag('g', false).text('a', "second").take();
  const auto fields = Fields::parse(text).value();
  EXPECT_EQ(fields.text('a'), odd);
  EXPECT_EQ(fields.number<int>('n', 0).value(), -7);
  EXPECT_TRUE(fields.flag('f'));
  EXPECT_FALSE(fields.flag('g'));
  EXPECT_EQ(fields.number<int>('z', 5).value(), 5);
  EXPECT_FALSE(fields.number<int>('a', 0));
}

TEST(Fields, DamageIsFound) {
  for (const char* text : {"a", "a5:x", "a5", "a-1:x", "a99999999999999999999:x", "ax:y", "a1:xb", ":1:x1"}) {
    EXPECT_FALSE(Fields::parse(text)) << text;
  }
  std::string many;
  for (std::size_t i = 0; i <= Fields::kMost; ++i) many += "a0:";
  EXPECT_FALSE(Fields::parse(many));
}

RC_GTEST_PROP(Fields, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  (void)Fields::parse(bytes).has_value();
  (void)read_word(bytes).has_value();
  (void)read_call(bytes, 0).has_value();
  (void)read_outcome(bytes).has_value();
  (void)read_error(bytes);
}

TEST(PeerMessages, AWordComesBack) {
  const PeerWord word{.node = {.name = "b",
                               .incarnation = 7,
                               .number = 9,
                               .tokens = 2.5,
                               .backlog_s = 0.125,
                               .is_draining = true,
                               .warm = std::make_shared<WarmFunctions>(WarmFunctions{1, 0xfedcba9876543210}),
                               .tenants = {{3, 0.25, true}, {0xfedcba9876543210, 123'456.789, false}}},
                      .functions = ~std::uint64_t{0},
                      .known_incarnation = 3,
                      .thinks_dead = true};
  const PeerWord read = read_word(write_word(word)).value();
  EXPECT_EQ(read.node.name, "b");
  EXPECT_EQ(read.node.incarnation, 7u);
  EXPECT_EQ(read.node.number, 9u);
  EXPECT_EQ(read.node.tokens, 2.5);
  EXPECT_EQ(read.node.backlog_s, 0.125);
  EXPECT_TRUE(read.node.is_draining);
  EXPECT_EQ(*read.node.warm, *word.node.warm);
  EXPECT_EQ(read.node.tenants, word.node.tenants);
  EXPECT_EQ(read.functions, word.functions);
  EXPECT_EQ(read.known_incarnation, 3u);
  EXPECT_TRUE(read.thinks_dead);
}

TEST(PeerMessages, AWordIsBounded) {
  PeerWord word{.node = {.name = "b", .warm = std::make_shared<WarmFunctions>(kMostWarmFunctions)}};
  EXPECT_TRUE(read_word(write_word(word)));
  word.node.warm = std::make_shared<WarmFunctions>(kMostWarmFunctions + 1);
  EXPECT_FALSE(read_word(write_word(word)));
  EXPECT_EQ(read_word(std::string(kMostWordBytes + 1, 'x')).error().code, Errc::kTooLarge);
  EXPECT_FALSE(read_word("n1:bw7:1234567"));
}

// Of an older node nothing is known of tenants; what a newer one says beyond what is known here is skipped.
TEST(PeerMessages, AWordOfANodeOfAnotherVersionIsRead) {
  const PeerWord word{.node = {.name = "b", .incarnation = 7, .number = 9, .tenants = {{3, 0.25, true}}}};
  const std::string text = write_word(word), older = text.substr(0, text.find("s17:"));
  EXPECT_TRUE(read_word(older).value().node.tenants.empty());
  EXPECT_EQ(read_word(text + FieldWriter().text('Z', "news").take()).value().node.tenants, word.node.tenants);
}

TEST(PeerMessages, TenantsOfAWordAreBounded) {
  PeerWord word{.node = {.name = "b"}};
  for (std::uint64_t i = 0; i < kMostTenantsSaid; ++i)
    word.node.tenants.push_back({~std::uint64_t{0} - kMostTenantsSaid + i, kMostServedSeconds, true});
  word.node.warm = std::make_shared<WarmFunctions>(kMostWarmFunctions);
  EXPECT_TRUE(read_word(write_word(word))) << "the most of all fits";
  word.node.tenants.push_back({~std::uint64_t{0}, 0, false});
  EXPECT_FALSE(read_word(write_word(word)));
  const auto saying = [](const std::string& bytes) {
    return read_word("n1:b" + FieldWriter().text('s', bytes).take());
  };
  EXPECT_FALSE(saying(std::string(16, 'x')));
  EXPECT_FALSE(saying(std::string(17, '\xff'))) << "service of half a million years";
  EXPECT_FALSE(saying(std::string(34, '\0'))) << "one tenant twice";
  EXPECT_TRUE(saying(std::string(17, '\0')));
}

TEST(PeerMessages, ACallComesBackAndItsDeadlineIsWhatIsLeft) {
  PeerCall call{.request = {}, .is_event = true, .tenant = "t", .role = "invoker", .hops = 1, .known_number = 5};
  Invocation& invocation = call.request.invocation;
  invocation.function = "f";
  invocation.client_context = std::string("\0{}", 3);
  invocation.trace_id = "trace";
  invocation.deadline_ms = 10'500;
  invocation.http = HttpPart{.method = "GET", .path = "/x?y", .headers = {{"A", "1"}, {"A", ""}, {"b", "n1:v"}}};
  call.request.sdk_invocation_id = "id";
  call.request.want_log_tail = true;
  const PeerCall read = read_call(write_call(call, 10'000), 77'000).value();
  EXPECT_EQ(read.request.invocation.function, "f");
  EXPECT_EQ(read.request.invocation.client_context, invocation.client_context);
  EXPECT_EQ(read.request.invocation.trace_id, "trace");
  EXPECT_EQ(read.request.invocation.deadline_ms, 77'500);
  EXPECT_EQ(read.request.invocation.http, invocation.http);
  EXPECT_EQ(read.request.sdk_invocation_id, "id");
  EXPECT_TRUE(read.request.want_log_tail && read.is_event);
  EXPECT_EQ(read.tenant, "t");
  EXPECT_EQ(read.role, "invoker");
  EXPECT_EQ(read.hops, 1u);
  EXPECT_EQ(read.known_number, 5u);
  EXPECT_FALSE(read_call("f1:fd1:0", 0));
  EXPECT_FALSE(read_call("f1:fd2:-5", 0));
  EXPECT_FALSE(read_call("f1:fh20:18446744073709551616", 0));
  EXPECT_FALSE(read_call("f1:fM3:GETH3:n1:", 0));
}

TEST(PeerMessages, AnOutcomeComesBack) {
  Outcome outcome{.request_id = "r",
                  .kind = OutcomeKind::kCrashed,
                  .content_type = "text/plain",
                  .failure = {"Type", "text"},
                  .log_tail = "log",
                  .start = StartKind::kCold,
                  .queue_time = Duration(3),
                  .gpu_time = Duration(4),
                  .gpu = GpuId(2)};
  const Outcome read = read_outcome(write_outcome(outcome)).value();
  EXPECT_EQ(read.request_id, "r");
  EXPECT_EQ(read.kind, OutcomeKind::kCrashed);
  EXPECT_EQ(read.content_type, "text/plain");
  EXPECT_EQ(read.failure, outcome.failure);
  EXPECT_EQ(read.log_tail, "log");
  EXPECT_EQ(read.start, StartKind::kCold);
  EXPECT_EQ(read.queue_time, Duration(3));
  EXPECT_EQ(read.gpu_time, Duration(4));
  EXPECT_EQ(read.gpu, GpuId(2));
  EXPECT_FALSE(read_outcome("k2:99s1:0"));
}

TEST(PeerMessages, AnErrorKeepsItsCode) {
  const Error read = read_error(write_error({Errc::kResourceExhausted, "full"}));
  EXPECT_EQ(read.code, Errc::kResourceExhausted);
  EXPECT_EQ(read.message, "full");
  EXPECT_EQ(read_error("<html>").code, Errc::kCorrupt);
}

}  // namespace
}  // namespace fairlead
