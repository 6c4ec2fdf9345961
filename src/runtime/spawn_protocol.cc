#include "runtime/spawn_protocol.h"

#include <cstring>

namespace fairlead {
namespace {

constexpr std::uint64_t kStartedTag = 1;
constexpr std::uint64_t kExitTag = 2;

class Writer {
 public:
  Writer& u64(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& text(std::string_view value) {
    u64(value.size());
    bytes_.append(value);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t u64() {
    std::uint64_t value = 0;
    if (rest_.size() < sizeof value) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
  std::string text() {
    const std::uint64_t size = u64();
    if (size > rest_.size()) {
      ok_ = false;
      return {};
    }
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  // A count of things that take at least one u64 each.
  std::uint64_t count() {
    const std::uint64_t value = u64();
    if (value > rest_.size() / sizeof(std::uint64_t)) ok_ = false;
    return ok_ ? value : 0;
  }
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

void write(Writer& out, const MountBind& bind) {
  out.text(bind.source).text(bind.target).u64(bind.writable).u64(bind.as_owner).u64(bind.identity.has_value());
  if (!bind.identity) return;
  out.u64(bind.identity->device).u64(bind.identity->inode).u64(static_cast<std::uint64_t>(bind.identity->born_ns));
}

MountBind read_bind(Reader& in) {
  MountBind bind{in.text(), in.text(), false};
  bind.writable = in.u64() != 0;
  bind.as_owner = in.u64() != 0;
  if (in.u64() == 0) return bind;
  FileIdentity identity;
  identity.device = in.u64();
  identity.inode = in.u64();
  identity.born_ns = in.i64();
  bind.identity = identity;
  return bind;
}

}  // namespace

std::string encode(const StartOrder& order) {
  Writer out;
  out.u64(order.instance).u64(order.environment.size());
  for (const std::string& entry : order.environment) out.text(entry);
  out.u64(order.binds.size());
  for (const MountBind& bind : order.binds) write(out, bind);
  out.u64(order.memory_limit.count()).u64(order.tmp_limit.count()).u64(order.max_processes);
  out.text(order.container).u64(order.http_port).text(order.http_health);
  out.u64(order.uid).text(order.egress_asked).text(order.egress_granted);
  out.u64(order.secrets.size());
  for (const SecretFile& secret : order.secrets) out.text(secret.name).text(secret.value);
  return out.take();
}

std::string encode(const StartedNote& note) {
  return Writer().u64(kStartedTag).u64(note.instance).u64(note.pid).take();
}

std::string encode(const ExitNote& note) {
  return Writer()
      .u64(kExitTag)
      .u64(note.instance)
      .u64(note.ended)
      .u64(note.wait_status)
      .text(note.failure)
      .u64(note.memory_peak)
      .u64(note.is_nodes_fault)
      .take();
}

Result<StartOrder> decode_start_order(std::string_view bytes) {
  Reader in(bytes);
  StartOrder order;
  order.instance = in.u64();
  for (std::uint64_t left = in.count(); left > 0; --left) order.environment.push_back(in.text());
  for (std::uint64_t left = in.count(); left > 0; --left) {
    order.binds.push_back(read_bind(in));
  }
  order.memory_limit = Bytes(in.i64());
  order.tmp_limit = Bytes(in.i64());
  order.max_processes = in.u64();
  order.container = in.text();
  order.http_port = in.u64();
  order.http_health = in.text();
  order.uid = in.u64();
  order.egress_asked = in.text();
  order.egress_granted = in.text();
  for (std::uint64_t left = in.count(); left > 0; --left) {
    SecretFile secret{.name = in.text(), .value = {}};
    secret.value = in.text();
    order.secrets.push_back(std::move(secret));
  }
  if (!in.complete()) return fail(Errc::kCorrupt, "start order of {} bytes is malformed", bytes.size());
  return order;
}

Result<std::variant<StartedNote, ExitNote>> decode_note(std::string_view bytes) {
  Reader in(bytes);
  std::variant<StartedNote, ExitNote> result;
  const std::uint64_t tag = in.u64();
  if (tag == kStartedTag) {
    StartedNote note{in.u64(), 0};
    note.pid = in.i64();
    result = note;
  } else if (tag == kExitTag) {
    ExitNote note;
    note.instance = in.u64();
    note.ended = in.u64() != 0;
    note.wait_status = in.i64();
    note.failure = in.text();
    note.memory_peak = in.i64();
    note.is_nodes_fault = in.u64() != 0;
    result = std::move(note);
  }
  if (tag < kStartedTag || tag > kExitTag || !in.complete()) {
    return fail(Errc::kCorrupt, "note of {} bytes with tag {} is malformed", bytes.size(), tag);
  }
  return result;
}

}  // namespace fairlead
