// How files are served, and what is in the program: its size, and that nothing in it breaks the page's own policy.
#include "edge/console/site.h"

#include <array>

#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kMostPackedBytes = 50 << 10;  // of the whole console
constexpr SiteFile kFiles[] = {
    {"app.js", "text/javascript", "\"1\"", "plain js", "packed js"},
    {"index.html", "text/html", "\"2\"", "plain page", "packed page"},
    {"vendor/a.js", "text/javascript", "\"3\"", "vendor", "packed vendor"},
};

class SiteTest : public EdgeTest {
 protected:
  void serve_site(std::span<const SiteFile> files, std::span<const std::string_view> missing = {}) {
    Edge edge{.name = "console", .prefixes = {"/console"}, .errors = document_errors()};
    add_site_routes(edge.routes, files, missing);
    serve(std::move(edge));
  }
};

TEST_F(SiteTest, FilesAreServedPackedWhereThatIsAccepted) {
  serve_site(kFiles);
  EXPECT_EQ("plain page", call("GET", "/console/").response->body);
  EXPECT_EQ("vendor", call("GET", "/console/vendor/a.js").response->body);
  const FakeExchange packed = call("GET", "/console/app.js", "", {{"Accept-Encoding", "br, gzip"}});
  EXPECT_EQ("packed js", packed.response->body);
  EXPECT_EQ("gzip", packed.response_header("Content-Encoding"));
  EXPECT_EQ("Accept-Encoding", packed.response_header("Vary"));
  EXPECT_EQ("plain js", call("GET", "/console/app.js", "", {{"Accept-Encoding", "gzip;q=0"}}).response->body);
  EXPECT_EQ("/console/", call("GET", "/console").response_header("Location"));
}

TEST_F(SiteTest, WhatABrowserHasIsNotSentAgain) {
  serve_site(kFiles);
  const FakeExchange known = call("GET", "/console/app.js", "", {{"If-None-Match", "\"0\", W/\"1\""}});
  EXPECT_EQ(304u, known.response->status);
  EXPECT_EQ("", known.response->body);
  EXPECT_EQ("\"1\"", known.response_header("ETag"));
  EXPECT_EQ(200u, call("GET", "/console/app.js", "", {{"If-None-Match", "\"2\""}}).response->status);
}

TEST_F(SiteTest, OnlyWhatIsThereIsServed) {
  serve_site(kFiles);
  for (const char* path :
       {"/console/../app.js", "/console/%2e%2e/app.js", "/console/vendor", "/console//app.js", "/console/nothing"}) {
    EXPECT_EQ(404u, call("GET", path).response->status) << path;
  }
  EXPECT_EQ(405u, call("POST", "/console/app.js").response->status);
}

TEST_F(SiteTest, EveryAnswerHasThePolicy) {
  serve_site(kFiles);
  for (const char* path : {"/console/", "/console/app.js", "/console/vendor/a.js"}) {
    const FakeExchange file = call("GET", path);
    EXPECT_EQ(kContentPolicy, file.response_header("Content-Security-Policy"));
    EXPECT_EQ("nosniff", file.response_header("X-Content-Type-Options"));
  }
  EXPECT_THAT(kContentPolicy, HasSubstr("default-src 'self'"));
  EXPECT_THAT(kContentPolicy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(kContentPolicy, Not(HasSubstr("unsafe")));
}

TEST_F(SiteTest, WithoutItsVendorFilesThereIsOnePageThatSaysSo) {
  constexpr std::array<std::string_view, 2> kMissing = {"preact 11.2.0", "htm 3.1.1"};
  serve_site(kFiles, kMissing);
  for (const char* path : {"/console/", "/console/app.js"}) {
    const FakeExchange page = call("GET", path);
    EXPECT_EQ(501u, page.response->status);
    EXPECT_THAT(page.response->body, HasSubstr("<li>preact 11.2.0</li><li>htm 3.1.1</li>"));
    EXPECT_THAT(page.response->body, HasSubstr("tools/console-vendor"));
  }
}

// ---- what is in this program

TEST(Site, TheConsoleFitsItsBytes) {
  if (!missing_site_parts().empty()) GTEST_SKIP() << "tools/console-vendor has not run";
  std::size_t packed = 0;
  for (const SiteFile& file : site_files()) {
    if (file.path != "licenses.txt") packed += file.gzip.size();
  }
  RecordProperty("packed_bytes", static_cast<int>(packed));
  EXPECT_LE(packed, kMostPackedBytes);
}

TEST(Site, NothingIsInlineAndNothingIsElsewhere) {
  for (const SiteFile& file : site_files()) {
    if (file.path.starts_with("vendor/") || file.path == "licenses.txt") continue;
    for (const char* forbidden :
         {"innerHTML", "outerHTML", "dangerouslySetInnerHTML", "insertAdjacentHTML", "document.write", "eval(",
          "new Function", "javascript:", "<style", "style=\"", "onclick=\"", "//cdn", "https://"}) {
      EXPECT_THAT(std::string(file.plain), Not(HasSubstr(forbidden))) << file.path;
    }
  }
}

TEST(Site, FilesAreWhatTheirTagsSay) {
  ASSERT_FALSE(site_files().empty());
  for (const SiteFile& file : site_files()) {
    EXPECT_FALSE(file.plain.empty()) << file.path;
    EXPECT_EQ("\x1f\x8b", file.gzip.substr(0, 2)) << file.path;
    EXPECT_EQ('"', file.etag.front());
    EXPECT_EQ(22u, file.etag.size()) << file.path;
  }
}

}  // namespace
}  // namespace fairlead
