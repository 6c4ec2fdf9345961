#include "store/record_checksum.h"

#include <sodium.h>

#include <cstring>
#include <optional>

#include "store/http_part.h"

namespace fairlead::store {
namespace {

// Fields with their lengths, so that no two records run into the same bytes.
class Checksum {
 public:
  Checksum() { crypto_generichash_init(&state_, nullptr, 0, kBytes); }

  Checksum& add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    return *this;
  }
  Checksum& add(std::int64_t value) {
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(&value), sizeof value);
    return *this;
  }
  Checksum& add(const std::optional<std::int64_t>& value) {
    return add(std::int64_t{value.has_value()}).add(value.value_or(0));
  }
  // Of the versions that there were not always: 0 is what older records have, and adds nothing.
  Checksum& add_version(std::uint64_t version) {
    return version == 0 ? *this : add(static_cast<std::int64_t>(version));
  }
  std::int64_t finish() {
    unsigned char digest[kBytes];
    crypto_generichash_final(&state_, digest, sizeof digest);
    std::int64_t value = 0;
    std::memcpy(&value, digest, sizeof value);
    return value;
  }

 private:
  static constexpr std::size_t kBytes = crypto_generichash_BYTES_MIN;
  crypto_generichash_state state_;
};

}  // namespace

std::int64_t checksum_of(const QueuedEvent& event) {
  const Invocation& invocation = event.invocation;
  return Checksum()
      .add(invocation.request_id)
      .add(invocation.function)
      .add(invocation.payload)
      .add(invocation.client_context)
      .add(invocation.trace_id)
      .add(invocation.deadline_ms)
      .add(http_text(invocation.http))
      .add(std::int64_t{event.attempts})
      .add(event.accepted_ms)
      .add(event.not_before_ms)
      .add_version(invocation.version)
      .finish();
}

std::int64_t checksum_of(const DeadLetter& letter) {
  return Checksum()
      .add(letter.request_id)
      .add(letter.function)
      .add(letter.payload)
      .add(letter.client_context)
      .add(letter.trace_id)
      .add(http_text(letter.http))
      .add_version(letter.version)
      .finish();
}

std::int64_t checksum_of(std::string_view bytes) {
  return Checksum().add(bytes).finish();
}

}  // namespace fairlead::store
