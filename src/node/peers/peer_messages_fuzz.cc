// libFuzzer: any text of a peer is a word, a call, an outcome, an error or an answer in parts, or refused with a reason; what is taken is written and
// read again as it was, a word's numbers are such as may be counted with, and an answer is the same wherever its pieces end.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/fuzz_seeds.h"
#include "edge/streamed_answer.h"
#include "net/http_client.h"
#include "node/peers/fields.h"
#include "node/peers/peer_messages.h"
#include "node/peers/peer_stream.h"

namespace fairlead {

// What is linked here can send and ask, and does not: no server is there, and no peer.
void AnswerFraming::refused(net::HttpExchange, const Error&) {
  std::abort();
}

void net::HttpExchange::respond(HttpResponse) {
  std::abort();
}

std::string_view net::ClientResponse::header(std::string_view) const {
  std::abort();
}

}  // namespace fairlead

namespace {

using namespace fairlead;

constexpr std::int64_t kNow = 1'800'000'000'000;

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename Value>
void require_reason(const Result<Value>& read) {
  require(read || !read.error().message.empty());
}

struct Answer {
  std::string parts, said;  // what an outcome or a refusal says
};
Answer answer_of(std::string_view text, std::size_t piece) {
  Answer answer;
  PeerStreamReader reader([&](std::string_view part) { answer.parts += part; });
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    if (const Status read = reader.feed(text.substr(0, piece)); !read) {
      require(!read.error().message.empty());
      answer.said = read.error().message;
      return answer;
    }
  }
  const auto outcome = reader.end();
  answer.said = outcome ? write_outcome(*outcome) + outcome->payload : outcome.error().message;
  return answer;
}

}  // namespace

std::vector<std::string> fairlead::fuzz_seeds() {
  PeerWord word;
  word.node.name = "node-1";
  word.node.incarnation = word.node.number = 1;
  word.node.tokens = 2;
  word.node.tenants = {{1, 0.5, true}, {2, 1e6, false}};
  PeerCall call;
  call.request.invocation.function = "f";
  call.tenant = "default";
  call.role = "invoker";
  return {write_word(word), write_call(call, kNow), write_outcome({.request_id = "r"}),
          write_error({Errc::kNotFound, "no"}),
          FieldWriter().text('p', "part").text('o', write_outcome({.request_id = "r"})).text('b', "").take()};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  require_reason(Fields::parse(text));
  const auto word = read_word(text);
  require_reason(word);
  if (word) {
    require(std::isfinite(word->node.tokens) && word->node.tokens >= 0);
    require(std::isfinite(word->node.backlog_s) && word->node.backlog_s >= 0);
    require(word->node.tenants.size() <= kMostTenantsSaid);
    for (const TenantService& tenant : word->node.tenants) {
      require(std::isfinite(tenant.seconds) && tenant.seconds >= 0 && tenant.seconds <= kMostServedSeconds);
    }
    const auto again = read_word(write_word(*word));
    require(again && again->node.name == word->node.name && again->node.number == word->node.number);
    require(again->node.tenants.size() == word->node.tenants.size());
  }
  const auto call = read_call(text, kNow);
  require_reason(call);
  if (call) {
    const auto again = read_call(write_call(*call, kNow), kNow);
    require(again && again->request.invocation.function == call->request.invocation.function &&
            again->tenant == call->tenant);
  }
  require_reason(read_outcome(text));
  require(!read_error(text).message.empty());
  const Answer whole = answer_of(text, text.size()), pieces = answer_of(text, 3);
  require(whole.parts == pieces.parts && whole.said == pieces.said);
  return 0;
}
