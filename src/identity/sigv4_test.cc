#include "identity/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace fairlead::identity {
namespace {

using ::testing::HasSubstr;

// The secret, time and scope of AWS's published test suite.
constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
constexpr std::string_view kDate = "20150830T123600Z";
constexpr std::int64_t kThen = 1'440'938'160'000;

class Sigv4Test : public ::testing::Test {
 protected:
  SignedRequest request() const {
    return {.method = method,
            .target = target,
            .header =
                [this](std::string_view name) {
                  const auto it = headers.find(name);
                  return it == headers.end() ? std::string_view() : std::string_view(it->second);
                },
            .payload_sha256 = [this] { return to_hex(as_text(sha256(body))); }};
  }

  Sigv4 parts() const {
    return {.key_id = "AKIDEXAMPLE",
            .date = "20150830",
            .region = "us-east-1",
            .service = "service",
            .signed_headers = signed_headers,
            .signature = {}};
  }

  std::string authorization() const { return sign(parts(), signing_key(kSecret, parts()), request()); }

  Status check(const std::string& text, std::int64_t now_ms = kThen, std::string_view secret = kSecret) const {
    const auto read = parse_sigv4(text);
    if (!read) return fail(read.error());
    return verify(*read, signing_key(secret, *read), request(), now_ms);
  }

  std::string refusal(const std::string& text, std::int64_t now_ms = kThen, std::string_view secret = kSecret) const {
    const Status status = check(text, now_ms, secret);
    EXPECT_FALSE(status);
    return status ? std::string() : status.error().message;
  }

  std::string method = "GET", target = "/", body, signed_headers = "host;x-amz-date";
  std::map<std::string, std::string, std::less<>> headers = {{"host", "example.amazonaws.com"},
                                                             {"x-amz-date", std::string(kDate)}};
};

TEST_F(Sigv4Test, PublishedExamplesHaveTheirSignatures) {
  EXPECT_THAT(authorization(), HasSubstr("Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"));
  target = "/?Param2=value2&Param1=value1";
  EXPECT_THAT(authorization(), HasSubstr("Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
}

TEST_F(Sigv4Test, WhatWasSignedIsAccepted) {
  method = "POST";
  target = "/2015-03-31/functions/a%3Ab/invocations?Qualifier=%24LATEST&empty";
  body = "{}";
  EXPECT_TRUE(check(authorization()));
}

// curl and some others do not encode the path again.
TEST_F(Sigv4Test, APathThatWasEncodedOnceIsAcceptedToo) {
  target = "/tags/arn%3Aaws";
  // What a signer that takes the path as it is writes: the signature of a target whose second encoding is that path.
  const std::string canonical_once =
      "GET\n/tags/arn%3Aaws\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
      "host;x-amz-date\n" +
      to_hex(as_text(sha256("")));
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", kDate, parts().scope(), to_hex(as_text(sha256(canonical_once))));
  const std::string signature = to_hex(as_text(hmac_sha256(as_text(signing_key(kSecret, parts())), to_sign)));
  EXPECT_TRUE(
      check(fmt::format("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{}, SignedHeaders=host;x-amz-date, Signature={}",
                        parts().scope(), signature)));
}

TEST_F(Sigv4Test, WhatWasChangedOnTheWayIsRefused) {
  method = "POST";
  target = "/f?a=1";
  body = "payload";
  const std::string text = authorization();
  ASSERT_TRUE(check(text));
  const auto is_refused_with = [&](std::string& part, const std::string& other) {
    const std::string before = std::exchange(part, other);
    EXPECT_THAT(refusal(text), HasSubstr("is not that of key AKIDEXAMPLE")) << other;
    part = before;
  };
  is_refused_with(method, "PUT");
  is_refused_with(target, "/g?a=1");
  is_refused_with(target, "/f?a=2");
  is_refused_with(target, "/f?a=1&b=1");
  is_refused_with(target, "/f");
  is_refused_with(body, "Payload");
  is_refused_with(headers["host"], "other.example");
  is_refused_with(headers["x-amz-date"], "20150830T123601Z");
  EXPECT_THAT(refusal(text, kThen, "another secret"), HasSubstr("is not that of key"));
  std::string forged = text;
  forged.back() = forged.back() == '0' ? '1' : '0';
  EXPECT_THAT(refusal(forged), HasSubstr("is not that of key"));
}

TEST_F(Sigv4Test, SpacesInHeadersAndTheOrderOfTheQueryDoNotMatter) {
  headers["x-amz-log-type"] = "a   b";
  signed_headers = "host;x-amz-date;x-amz-log-type";
  target = "/?b=2&a=1&a=0";
  const std::string text = authorization();
  headers["x-amz-log-type"] = " a b ";
  target = "/?a=0&a=1&b=2";
  EXPECT_TRUE(check(text));
}

TEST_F(Sigv4Test, HeadersThatChangeTheMeaningMustBeSigned) {
  const std::string text = authorization();
  headers["x-amz-invocation-type"] = "Event";
  EXPECT_THAT(refusal(text), HasSubstr("the request has x-amz-invocation-type, so it must be a signed header"));
  headers.erase("x-amz-invocation-type");
  headers["x-fairlead-tenant"] = "another";
  EXPECT_THAT(refusal(text), HasSubstr("x-fairlead-tenant"));
  headers.erase("x-fairlead-tenant");
  for (const char* missing : {"host", "x-amz-date"}) {
    signed_headers = std::string(missing) == "host" ? "x-amz-date" : "host";
    EXPECT_THAT(refusal(authorization()), HasSubstr(fmt::format("{} must be a signed header", missing)));
  }
}

TEST_F(Sigv4Test, ASignatureIsGoodForAQuarterOfAnHour) {
  const std::string text = authorization();
  EXPECT_TRUE(check(text, kThen + 900'000));
  EXPECT_TRUE(check(text, kThen - 900'000));
  EXPECT_THAT(refusal(text, kThen + 901'000), HasSubstr("901 s from the node's clock; at most 900 s"));
  EXPECT_THAT(refusal(text, kThen - 901'000), HasSubstr("901 s"));
  for (const char* date :
       {"", "20150830T1236Z", "20150830T123600", "2015083aT123600Z", "20151330T123600Z", "20150831T123600Z"}) {
    headers["x-amz-date"] = date;
    EXPECT_THAT(refusal(authorization()), HasSubstr("of the day in the credential")) << date;
  }
}

TEST_F(Sigv4Test, TheHashThatAHeaderClaimsIsThatOfTheBody) {
  headers["x-amz-content-sha256"] = "UNSIGNED-PAYLOAD";
  signed_headers = "host;x-amz-content-sha256;x-amz-date";
  EXPECT_THAT(refusal(authorization()),
              HasSubstr("x-amz-content-sha256 is 'UNSIGNED-PAYLOAD', the body's SHA-256 is e3b0c4"));
}

TEST(ParseSigv4, SaysWhatIsMissing) {
  const std::string credential = "AWS4-HMAC-SHA256 Credential=K/20150830/r/s/aws4_request, ";
  const std::string signature = "Signature=" + std::string(64, 'a');
  const auto refusal = [](const std::string& text) {
    const auto read = parse_sigv4(text);
    return read ? std::string("none") : read.error().message;
  };
  EXPECT_EQ(refusal(credential + "SignedHeaders=host, " + signature), "none");
  EXPECT_THAT(refusal("AWS4-HMAC-SHA256"), HasSubstr("Credential is ''"));
  EXPECT_THAT(refusal("AWS4-HMAC-SHA256 Credential=K/20150830/r/aws4_request, " + signature),
              HasSubstr("Credential is 'K/"));
  EXPECT_THAT(refusal("AWS4-HMAC-SHA256 Credential=K/1/r/s/aws4_request, " + signature),
              HasSubstr("Credential is 'K/"));
  EXPECT_THAT(refusal(credential + "SignedHeaders=host"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(refusal(credential + "Signature=" + std::string(63, 'a')), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(refusal(credential + signature + ", SignedHeaders=" + std::string(64, ';')),
              HasSubstr("names 65 headers"));
}

}  // namespace
}  // namespace fairlead::identity
