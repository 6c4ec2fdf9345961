#include "edge/native/objects.h"

#include "edge/error_document.h"
#include "edge/router.h"
#include "edge/testing/edge_fixture.h"
#include "net/body_sink.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;

class ObjectRoutesTest : public EdgeTest {
 protected:
  ObjectRoutesTest() { serve(object_edge(*node_.object_store, {})); }

  // One request and what the store has to do for it.
  FakeExchange ask(std::string method, std::string target, std::string body = "", Headers headers = {},
                   bool is_local = true) {
    const auto exchange = begin(std::move(method), std::move(target), std::move(body), std::move(headers), is_local);
    wait_for(*exchange);
    return *exchange;
  }
  // A body that arrives in pieces, until it is `sent`; null where its route collects bodies.
  std::shared_ptr<FakeExchange> upload(const std::string& target, std::size_t bytes, std::string_view sent) {
    auto exchange = std::make_shared<FakeExchange>();
    exchange->method_text = "PUT";
    exchange->target_text = target;
    exchange->headers = {{"Content-Length", std::to_string(bytes)}};
    exchange->sink = router_.sink_for(*exchange);
    if (!exchange->sink) return nullptr;
    for (; !sent.empty(); sent.remove_prefix(std::min<std::size_t>(sent.size(), 64 << 10))) {
      exchange->sink->append(sent.substr(0, 64 << 10));
      while (exchange->sink->is_full()) node_.io.restart(), node_.io.run_one_for(std::chrono::minutes(2));
    }
    return exchange;
  }
  FakeExchange put_in_pieces(const std::string& target, const std::string& body) {
    const auto exchange = upload(target, body.size(), body);
    router_.dispatch(net::HttpExchange(exchange));
    wait_for(*exchange);
    return *exchange;
  }

  void wait_for(const FakeExchange& exchange) {
    while (!exchange.response) {
      node_.io.restart();
      ASSERT_GT(node_.io.run_one_for(std::chrono::minutes(2)), 0u);
    }
  }
};

TEST_F(ObjectRoutesTest, WhatWasPutIsRead) {
  const FakeExchange put = ask("PUT", "/v1/objects/a/b", "bytes");
  EXPECT_EQ(201u, put.response->status);
  EXPECT_EQ("sealed", put.json()["state"]);
  EXPECT_EQ("bytes", ask("GET", "/v1/objects/a/b").response->body);
  EXPECT_EQ("5", ask("HEAD", "/v1/objects/a/b").response_header("X-Fairlead-Object-Bytes"));
  EXPECT_EQ(204u, ask("DELETE", "/v1/objects/a/b").response->status);
  expect_error(ask("GET", "/v1/objects/a/b"), 404, "ResourceNotFoundException", "there is no object 'a/b'");
}

TEST_F(ObjectRoutesTest, ALargeOneIsWrittenAsItArrives) {
  std::string body(1 << 20, 'b');
  body.back() = 'e';
  const FakeExchange put = put_in_pieces("/v1/objects/large", body);
  EXPECT_EQ(201u, put.response->status);
  EXPECT_EQ("sealed", put.json()["state"]);
  EXPECT_TRUE(ask("GET", "/v1/objects/large").response->body == body);
  expect_error(put_in_pieces("/v1/objects/large", body), 409, "ResourceConflictException", "objects do not change");
}

TEST_F(ObjectRoutesTest, WhatIsSmallTooLargeOrWrongIsCollected) {
  EXPECT_EQ(nullptr, upload("/v1/objects/a", 1000, ""));
  EXPECT_EQ(nullptr, upload("/v1/objects/a", kMaxHttpObjectBytes + 1, ""));
  EXPECT_EQ(nullptr, upload("/v1/objects/a?lifetime=x", 1 << 20, ""));
}

TEST_F(ObjectRoutesTest, AnUploadThatIsCutOffLeavesTheKeyFreeAndTellsItsReaders) {
  const std::string body(1 << 20, 'b');
  auto cut = upload("/v1/objects/large", body.size(), body.substr(0, 600'000));
  const auto reader = begin("GET", "/v1/objects/large?wait=100");
  cut->sink.reset();
  wait_for(*reader);
  expect_error(*reader, 503, "ServiceException", "did not send all of it");
  EXPECT_EQ(201u, put_in_pieces("/v1/objects/large", body).response->status);
}

TEST_F(ObjectRoutesTest, AnUploadWhoseKeyWasDeletedHarmsNoOtherOne) {
  const std::string body(1 << 20, 'b');
  const auto first = upload("/v1/objects/large", body.size(), body);
  EXPECT_EQ(204u, ask("DELETE", "/v1/objects/large").response->status);
  const auto third = upload("/v1/objects/large", body.size(), body);
  router_.dispatch(net::HttpExchange(first));
  wait_for(*first);
  expect_error(*first, 404, "ResourceNotFoundException", "was deleted while it was sent");
  const auto fourth = upload("/v1/objects/large", body.size(), body.substr(1));
  fourth->sink.reset();
  router_.dispatch(net::HttpExchange(third));
  wait_for(*third);
  EXPECT_EQ(201u, third->response->status);
}

TEST_F(ObjectRoutesTest, AnUploadThatIsCutOffBeforeItHasMemoryLeavesNothing) {
  auto cut = upload("/v1/objects/large", 1 << 20, "");
  cut->sink.reset();
  const std::string body(1 << 20, 'b');
  while (put_in_pieces("/v1/objects/large", body).response->status != 201) {
  }
  EXPECT_EQ(1u, node_.object_store->usage().objects);
}

TEST_F(ObjectRoutesTest, APartIsReadByItsRange) {
  ask("PUT", "/v1/objects/a", "0123456789");
  const FakeExchange part = ask("GET", "/v1/objects/a", "", {{"Range", "bytes=2-4"}});
  EXPECT_EQ(206u, part.response->status);
  EXPECT_EQ("234", part.response->body);
  EXPECT_EQ("bytes 2-4/10", part.response_header("Content-Range"));
  EXPECT_EQ("bytes", part.response_header("Accept-Ranges"));
  EXPECT_EQ("0123456789", ask("GET", "/v1/objects/a", "", {{"Range", "bytes=0-1,3-4"}}).response->body);
  expect_error(ask("GET", "/v1/objects/a", "", {{"Range", "bytes=10-"}}), 416, "InvalidParameterValueException",
               "there are 10 bytes");
}

TEST_F(ObjectRoutesTest, PathsAreToldToLocalClientsOnly) {
  ask("PUT", "/v1/objects/a", "bytes");
  EXPECT_TRUE(ask("GET", "/v1/objects/a?info").json().contains("path"));
  EXPECT_FALSE(ask("GET", "/v1/objects/a?info", "", {}, /*is_local=*/false).json().contains("path"));
  expect_error(ask("POST", "/v1/objects/b?create=5", "", {}, /*is_local=*/false), 400, "InvalidParameterValueException",
               "use PUT");
}

TEST_F(ObjectRoutesTest, AReaderWaitsUntilItIsSealed) {
  ASSERT_EQ(201u, ask("POST", "/v1/objects/a?create=0").response->status);
  expect_error(ask("GET", "/v1/objects/a"), 504, "ServiceException", "is still pending");
  const auto reader = begin("GET", "/v1/objects/a?wait=100");
  EXPECT_EQ(200u, ask("POST", "/v1/objects/a?seal").response->status);
  wait_for(*reader);
  EXPECT_EQ(200u, reader->response->status);
}

TEST_F(ObjectRoutesTest, NumbersOfTheQueryAreChecked) {
  for (const char* target : {"/v1/objects/a?wait=x", "/v1/objects/a?wait=901", "/v1/objects?limit=0"}) {
    EXPECT_EQ(400u, ask("GET", target).response->status) << target;
  }
  expect_error(ask("POST", "/v1/objects/a?create=-1"), 400, "InvalidParameterValueException", "create is '-1'");
  expect_error(ask("POST", "/v1/objects/a"), 400, "InvalidParameterValueException", "?create=BYTES or ?seal");
  expect_error(ask("PUT", "/v1/objects/a?lifetime=1e99", "x"), 400, "InvalidParameterValueException", "lifetime");
}

TEST_F(ObjectRoutesTest, TheHeaderSaysWhoseUnlessTheDoorDoes) {
  ask("PUT", "/v1/objects/a", "acme's", {{"X-Fairlead-Tenant", "acme"}});
  EXPECT_EQ(404u, ask("GET", "/v1/objects/a").response->status);
  Router door{document_errors()};
  ASSERT_TRUE(door.add(object_edge(*node_.object_store, {.tenant = "acme", .content_dir = "/run/objects/content"})));
  auto exchange = std::make_shared<FakeExchange>();
  exchange->method_text = "GET";
  exchange->target_text = "/v1/objects/a?info";
  exchange->headers = {{"X-Fairlead-Tenant", "other"}};
  door.dispatch(net::HttpExchange(exchange));
  wait_for(*exchange);
  EXPECT_EQ("acme", exchange->json()["tenant"]);
  EXPECT_THAT(exchange->json()["path"].get<std::string>(), HasSubstr("/run/objects/content/"));
}

TEST_F(ObjectRoutesTest, ListsInPages) {
  for (const char* key : {"a", "b", "c"}) ask("PUT", std::string("/v1/objects/") + key, key);
  const FakeExchange first = ask("GET", "/v1/objects?limit=2");
  EXPECT_EQ("b", first.json()["next_after"]);
  const FakeExchange second = ask("GET", "/v1/objects?limit=2&after=b");
  EXPECT_EQ("c", second.json()["objects"][0]["key"]);
  EXPECT_FALSE(second.json().contains("next_after"));
}

}  // namespace
}  // namespace fairlead
