// libFuzzer: any text of a peer is a word, a call, an outcome or an error, or refused with a reason; what is taken is written and read again as it
// was, and a word's numbers are such as may be counted with.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/fuzz_seeds.h"
#include "node/peers/fields.h"
#include "node/peers/peer_messages.h"

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

}  // namespace

std::vector<std::string> fairlead::fuzz_seeds() {
  PeerWord word;
  word.node.name = "node-1";
  word.node.incarnation = word.node.number = 1;
  word.node.tokens = 2;
  PeerCall call;
  call.request.invocation.function = "f";
  call.tenant = "default";
  call.role = "invoker";
  return {write_word(word), write_call(call, kNow), write_outcome({.request_id = "r"}),
          write_error({Errc::kNotFound, "no"})};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  require_reason(Fields::parse(text));
  const auto word = read_word(text);
  require_reason(word);
  if (word) {
    require(std::isfinite(word->node.tokens) && word->node.tokens >= 0);
    require(std::isfinite(word->node.backlog_s) && word->node.backlog_s >= 0);
    const auto again = read_word(write_word(*word));
    require(again && again->node.name == word->node.name && again->node.number == word->node.number);
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
  return 0;
}
