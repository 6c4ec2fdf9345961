// What a credential costs a call: its verification alone, with the signing key that a caller's first request left behind.
#include <benchmark/benchmark.h>

#include "identity/keyring.h"

namespace fairlead::identity {
namespace {

constexpr std::int64_t kNow = 1'790'000'000'000;  // 20260921T141320Z

struct Caller {
  explicit Caller(std::size_t bytes) : body(bytes, 'x') {
    key = *keyring.issue("FLKAAAAAAAA", {.role = Role::kInvoker, .tenant = "a"}, kNow);
    const Sigv4 parts{.key_id = key.key.id,
                      .date = "20260921",
                      .region = "us-east-1",
                      .service = "lambda",
                      .signed_headers = "host;x-amz-date;x-amz-invocation-type",
                      .signature = {}};
    signature = sign(parts, signing_key(key.secret, parts), request());
    token = "Bearer " + key.token();
  }

  SignedRequest request() const {
    return {.method = "POST",
            .target = "/2015-03-31/functions/resnet50/invocations",
            .header = [](std::string_view name) -> std::string_view {
              if (name == "host") return "127.0.0.1:9001";
              if (name == "x-amz-date") return "20260921T141320Z";
              return name == "x-amz-invocation-type" ? "RequestResponse" : "";
            },
            .payload_sha256 = [this] { return to_hex(as_text(sha256(body))); }};
  }

  Keyring keyring{std::string(32, 'm')};
  IssuedKey key;
  std::string body, signature, token;
};

void verify_with(benchmark::State& state, const std::string Caller::*authorization) {
  Caller caller(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const auto who = caller.keyring.authenticate(caller.*authorization, caller.request(), kNow);
    if (!who) state.SkipWithError(who.error().message.c_str());
  }
}

void BM_Signature(benchmark::State& state) {
  verify_with(state, &Caller::signature);
}
BENCHMARK(BM_Signature)->ArgName("bytes")->Arg(0)->Arg(1 << 10)->Arg(256 << 10);

void BM_Token(benchmark::State& state) {
  verify_with(state, &Caller::token);
}
BENCHMARK(BM_Token)->ArgName("bytes")->Arg(1 << 10);

}  // namespace
}  // namespace fairlead::identity
