// AWS Signature Version 4, the reader's side: what boto3, the AWS CLI and curl --aws-sigv4 put into Authorization.
//
// Idea. Client and node share a secret. The client writes the request down in one form (method, path, query, some headers, the
// body's SHA-256), signs that with a key made from the secret, the day, a region and a service, and sends the signature. The node
// writes down what it received in the same form and signs it too: equal, or the request is refused. The secret itself is never
// sent, and what was signed cannot be changed on the way. What was sent can be sent again for kClockSkew: TLS keeps it from being
// seen.
//
// Example: Authorization: AWS4-HMAC-SHA256 Credential=FLK7.../20260131/us-east-1/lambda/aws4_request,
//          SignedHeaders=host;x-amz-date, Signature=5d67... (64 digits).
//
// Source: "Create a signed AWS API request", AWS IAM user guide. Region and service may be any: a node has neither.
//
// Pure. Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "identity/hmac.h"

namespace fairlead::identity {

// How far the client's clock may be from the node's.
inline constexpr Duration kClockSkew = std::chrono::minutes(15);

// The parts of Authorization. Views into its text.
struct Sigv4 {
  std::string_view key_id, date, region, service;  // date: "20260131"
  std::string_view signed_headers;                 // "host;x-amz-date"
  std::string_view signature;                      // 64 hexadecimal digits

  std::string scope() const;  // "20260131/us-east-1/lambda/aws4_request"
};

inline constexpr std::string_view kSigv4Scheme = "AWS4-HMAC-SHA256";

// REQUIRES: the text begins with kSigv4Scheme. kInvalidArgument says what is missing.
Result<Sigv4> parse_sigv4(std::string_view authorization);

// A request as it was received.
struct SignedRequest {
  std::string_view method;
  std::string_view target;                                   // with the query, percent-encoded
  std::function<std::string_view(std::string_view)> header;  // by name in lower case; empty: absent
  std::function<std::string()> payload_sha256;               // in hexadecimal, asked for once
};

// The key for a day, a region and a service. It is worth keeping: four HMACs.
Digest signing_key(std::string_view secret, const Sigv4& parts);

// Whether the request is what the owner of the key signed, less than kClockSkew ago. kUnauthenticated says what is wrong.
Status verify(const Sigv4& parts, const Digest& signing_key, const SignedRequest& request, std::int64_t now_ms);

// For clients and tests: Authorization for the request, with these headers signed. `scope_of` has all but signature.
std::string sign(const Sigv4& parts, const Digest& signing_key, const SignedRequest& request);

}  // namespace fairlead::identity
