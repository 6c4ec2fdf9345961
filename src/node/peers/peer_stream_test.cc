// An answer in parts, as bytes between two nodes.
#include "node/peers/peer_stream.h"

#include <gmock/gmock.h>

#include "node/peers/fields.h"
#include "node/peers/peer_messages.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string parts_and_outcome() {
  const auto framing = peer_framing(nullptr);
  return framing->part("hello") + framing->part(std::string(300, 'x')) +
         *framing->last({.request_id = "r", .kind = OutcomeKind::kCrashed, .payload = "{}", .was_streamed = true});
}

TEST(PeerStreamReader, GivesPartsAndOutcomeWhereverItsPiecesEnd) {
  const std::string all = parts_and_outcome();
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    std::string parts;
    PeerStreamReader reader([&](std::string_view part) { parts += part; });
    for (std::size_t at = 0; at < all.size(); at += piece) {
      EXPECT_FALSE(reader.end());
      ASSERT_TRUE(reader.feed(std::string_view(all).substr(at, piece)));
    }
    const auto outcome = reader.end();
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(parts, "hello" + std::string(300, 'x'));
    EXPECT_EQ(outcome->kind, OutcomeKind::kCrashed);
    EXPECT_EQ(outcome->payload, "{}");
    EXPECT_TRUE(outcome->was_streamed);
  }
}

TEST(PeerStreamReader, EveryShorterAnswerWasCut) {
  const std::string all = parts_and_outcome();
  for (std::size_t size = 0; size < all.size(); ++size) {
    PeerStreamReader reader([](std::string_view) {});
    ASSERT_TRUE(reader.feed(std::string_view(all).substr(0, size)));
    EXPECT_EQ(reader.end().error().code, Errc::kCorrupt) << size;
  }
}

TEST(PeerStreamReader, RefusesWhatIsNoSuchRow) {
  const std::string outcome = FieldWriter().text('o', write_outcome({.request_id = "r"})).take();
  for (const std::string& text :
       {std::string("x1:y"), std::string("p:"), std::string("p-1:x"), std::string("p99999999999999999999:"),
        std::string(40, 'p'), std::string(":"), std::string("b0:"), std::string("o0:"), outcome + "p1:x",
        outcome + outcome, outcome + "b0:p1:x", std::string("o9999999:"), outcome + "b9999999999:"}) {
    PeerStreamReader reader([](std::string_view) {});
    EXPECT_FALSE(reader.feed(text)) << text;
  }
}

struct Client final : AnswerStream {
  void begin(const AnswerHead& head) override {
    heads.push_back(std::string(head.request_id) + " " + std::string(head.content_type));
  }
  void part(std::string_view bytes) override { parts += bytes; }
  bool is_full() const override { return full; }
  bool is_gone() const override { return gone; }
  void on_change(std::function<void()> callback) override { change = std::move(callback); }
  std::vector<std::string> heads;
  std::string parts;
  bool full = false, gone = false;
  std::function<void()> change;
};

net::ClientResponse begun() {
  const net::HttpResponse head = peer_framing(nullptr)->head({.request_id = "r", .content_type = "text/plain"});
  return {.status = 200, .headers = head.headers};
}

TEST(PeerStream, ReadsOnlyWhileItsClientHasRoom) {
  const auto client = std::make_shared<Client>();
  const auto stream = std::make_shared<PeerStream>(client, [](const Error&) { FAIL(); });
  int resumed = 0;
  stream->on_resume([&] { ++resumed; });
  EXPECT_FALSE(stream->wants({.status = 200}));
  EXPECT_FALSE(stream->has_begun());
  ASSERT_TRUE(stream->wants(begun()));
  EXPECT_THAT(client->heads, ElementsAre("r text/plain"));
  EXPECT_TRUE(stream->take("p2:ab"));
  client->full = true;
  EXPECT_FALSE(stream->take("p1:c"));
  client->change();
  EXPECT_EQ(resumed, 0);
  client->full = false;
  client->change();
  EXPECT_EQ(resumed, 1);
  EXPECT_TRUE(stream->take(*peer_framing(nullptr)->last({.request_id = "r"})));
  EXPECT_EQ(stream->end()->request_id, "r");
  EXPECT_EQ(client->parts, "abc");
  EXPECT_FALSE(client->change) << "a client's stream that goes on calls what is no more";
}

TEST(PeerStream, IsOverOnceWhenItsClientGoesOrItsBytesAreNoAnswer) {
  for (const bool leaves : {true, false}) {
    const auto client = std::make_shared<Client>();
    std::vector<Error> over;
    const auto stream = std::make_shared<PeerStream>(client, [&](const Error& error) { over.push_back(error); });
    ASSERT_TRUE(stream->wants(begun()));
    client->gone = leaves;
    EXPECT_FALSE(stream->take(leaves ? "p2:ab" : "nonsense:"));
    client->change();
    ASSERT_EQ(over.size(), 1u);
    EXPECT_EQ(over[0].code, leaves ? Errc::kUnavailable : Errc::kCorrupt);
  }
}

}  // namespace
}  // namespace fairlead
