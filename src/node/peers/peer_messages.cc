#include "node/peers/peer_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "node/peers/fields.h"

namespace fairlead {
namespace {

constexpr std::size_t kMostErrorBytes = 4096;
constexpr std::int64_t kMostDeadlineMs = std::int64_t{24} * 3600 * 1000;

constexpr std::array kCodes = {Errc::kInvalidArgument,  Errc::kNotFound,        Errc::kAlreadyExists,
                               Errc::kConflict,         Errc::kTooLarge,        Errc::kResourceExhausted,
                               Errc::kDeadlineExceeded, Errc::kUnauthenticated, Errc::kForbidden,
                               Errc::kUnavailable,      Errc::kCorrupt,         Errc::kIo,
                               Errc::kInternal};

constexpr std::array kKinds = {OutcomeKind::kSuccess, OutcomeKind::kFunctionError, OutcomeKind::kTimeout,
                               OutcomeKind::kCrashed, OutcomeKind::kStartFailed,   OutcomeKind::kCancelled,
                               OutcomeKind::kRemoved, OutcomeKind::kShutdown,      OutcomeKind::kExpired};
constexpr std::array kStarts = {StartKind::kDeviceWarm, StartKind::kHostWarm, StartKind::kCold};

// Numbers as bytes, the lowest first: the machines of a cluster may differ in their order.
void put(std::string& bytes, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
}

std::uint64_t get(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (i * 8);
  return number;
}

std::string warm_bytes(const WarmFunctions& warm) {
  std::string bytes;
  bytes.reserve(warm.size() * 8);
  for (const std::uint64_t key : warm) put(bytes, key);
  return bytes;
}

Result<std::shared_ptr<const WarmFunctions>> warm_from(std::string_view bytes) {
  if (bytes.size() % 8 != 0 || bytes.size() / 8 > kMostWarmFunctions) {
    return fail(Errc::kInvalidArgument, "warm functions have {} bytes, they must be whole keys of 8, at most {}",
                bytes.size(), kMostWarmFunctions * 8);
  }
  auto warm = std::make_shared<WarmFunctions>();
  warm->reserve(bytes.size() / 8);
  for (; !bytes.empty(); bytes.remove_prefix(8)) warm->push_back(get(bytes));
  return warm;
}

// Of each tenant: its key, its service in microseconds, and 1 where it waits.
constexpr std::size_t kTenantBytes = 17;

std::string tenant_bytes(const std::vector<TenantService>& tenants) {
  std::string bytes;
  bytes.reserve(tenants.size() * kTenantBytes);
  for (const TenantService& tenant : tenants) {
    put(bytes, tenant.tenant);
    put(bytes, static_cast<std::uint64_t>(std::llround(tenant.seconds * 1e6)));
    bytes += tenant.is_waiting ? '\1' : '\0';
  }
  return bytes;
}

Result<std::vector<TenantService>> tenants_from(std::string_view bytes) {
  if (bytes.size() % kTenantBytes != 0 || bytes.size() / kTenantBytes > kMostTenantsSaid) {
    return fail(Errc::kInvalidArgument, "tenants have {} bytes, they must be whole ones of {}, at most {}",
                bytes.size(), kTenantBytes, kMostTenantsSaid * kTenantBytes);
  }
  std::vector<TenantService> tenants;
  for (; !bytes.empty(); bytes.remove_prefix(kTenantBytes)) {
    tenants.push_back({get(bytes), static_cast<double>(get(bytes.substr(8))) / 1e6, bytes[16] != '\0'});
  }
  return tenants;
}

// The first error of several reads.
class Reader {
 public:
  explicit Reader(const Fields& fields) : fields_(fields) {}
  template <typename T>
  T number(char letter, T absent = {}) {
    auto value = fields_.number<T>(letter, absent);
    if (value) return *value;
    if (status_) status_ = fail(value.error());
    return absent;
  }
  const Status& status() const { return status_; }

 private:
  const Fields& fields_;
  Status status_;
};

void write_http(FieldWriter& out, const HttpPart& http) {
  FieldWriter headers;
  std::string all;
  for (const auto& [name, value] : http.headers) {
    all += FieldWriter().text('n', name).text('v', value).take();
  }
  out.text('M', http.method).text('P', http.path).text('H', all);
}

Result<HttpPart> read_http(const Fields& fields) {
  HttpPart http{.method = std::string(fields.text('M')), .path = std::string(fields.text('P')), .headers = {}};
  std::string_view rest = fields.text('H');
  const auto next = [&rest](char letter) -> Result<std::string> {
    std::size_t size = 0;
    if (rest.empty() || rest.front() != letter) return fail(Errc::kCorrupt, "headers of a forwarded call are damaged");
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), size);
    const auto head = static_cast<std::size_t>(end - rest.data()) + 1;
    if (error != std::errc() || head > rest.size() || *end != ':' || size > rest.size() - head) {
      return fail(Errc::kCorrupt, "headers of a forwarded call are damaged");
    }
    std::string value(rest.substr(head, size));
    rest.remove_prefix(head + size);
    return value;
  };
  while (!rest.empty()) {
    auto name = next('n');
    if (!name) return fail(name.error());
    auto value = next('v');
    if (!value) return fail(value.error());
    http.headers.emplace_back(*std::move(name), *std::move(value));
  }
  return http;
}

}  // namespace

std::string write_word(const PeerWord& word) {
  FieldWriter out;
  out.text('n', word.node.name)
      .number('i', word.node.incarnation)
      .number('m', word.node.number)
      .number('t', word.node.tokens)
      .number('b', word.node.backlog_s)
      .flag('d', word.node.is_draining)
      .number('f', word.functions)
      .number('k', word.known_incarnation)
      .flag('x', word.thinks_dead);
  if (word.node.warm) out.text('w', warm_bytes(*word.node.warm));
  if (!word.node.tenants.empty()) out.text('s', tenant_bytes(word.node.tenants));
  return out.take();
}

Result<PeerWord> read_word(std::string_view text) {
  if (text.size() > kMostWordBytes) {
    return fail(Errc::kTooLarge, "a peer's word has {} bytes, it may have at most {}", text.size(), kMostWordBytes);
  }
  const auto fields = Fields::parse(text);
  if (!fields) return fail(fields.error());
  Reader read(*fields);
  PeerWord word{.node = {.name = std::string(fields->text('n')),
                         .incarnation = read.number<std::uint64_t>('i'),
                         .number = read.number<std::uint64_t>('m'),
                         .tokens = read.number<double>('t'),
                         .backlog_s = read.number<double>('b'),
                         .is_draining = fields->flag('d'),
                         .warm = nullptr,
                         .tenants = {}},
                .functions = read.number<std::uint64_t>('f'),
                .known_incarnation = read.number<std::uint64_t>('k'),
                .thinks_dead = fields->flag('x')};
  if (!read.status()) return fail(read.status().error());
  if (fields->has('w')) {
    auto warm = warm_from(fields->text('w'));
    if (!warm) return fail(warm.error());
    word.node.warm = *std::move(warm);
  }
  auto tenants = tenants_from(fields->text('s'));
  if (!tenants) return fail(tenants.error());
  word.node.tenants = *std::move(tenants);
  if (Status valid = validate(word.node); !valid) return fail(valid.error());
  return word;
}

std::string write_call(const PeerCall& call, std::int64_t now_ms) {
  const Invocation& invocation = call.request.invocation;
  FieldWriter out;
  out.text('f', invocation.function).text('t', call.tenant).text('r', call.role).number('h', call.hops);
  out.number('k', call.known_number).flag('e', call.is_event).flag('l', call.request.want_log_tail);
  out.flag('p', call.wants_parts);
  if (!call.request.sdk_invocation_id.empty()) out.text('s', call.request.sdk_invocation_id);
  if (!invocation.trace_id.empty()) out.text('c', invocation.trace_id);
  if (!invocation.client_context.empty()) out.text('x', invocation.client_context);
  if (invocation.deadline_ms) out.number('d', std::max<std::int64_t>(1, *invocation.deadline_ms - now_ms));
  if (invocation.http) write_http(out, *invocation.http);
  return out.take();
}

Result<PeerCall> read_call(std::string_view head, std::int64_t now_ms) {
  const auto fields = Fields::parse(head);
  if (!fields) return fail(fields.error());
  Reader read(*fields);
  PeerCall call{.request = {},
                .is_event = fields->flag('e'),
                .wants_parts = fields->flag('p'),
                .tenant = std::string(fields->text('t')),
                .role = std::string(fields->text('r')),
                .hops = read.number<unsigned>('h'),
                .known_number = read.number<std::uint64_t>('k')};
  Invocation& invocation = call.request.invocation;
  invocation.function = std::string(fields->text('f'));
  invocation.trace_id = std::string(fields->text('c'));
  invocation.client_context = std::string(fields->text('x'));
  call.request.sdk_invocation_id = std::string(fields->text('s'));
  call.request.want_log_tail = fields->flag('l');
  const auto left_ms = read.number<std::int64_t>('d', -1);
  if (!read.status()) return fail(read.status().error());
  if (fields->has('d')) {
    if (left_ms < 1 || left_ms > kMostDeadlineMs) {
      return fail(Errc::kInvalidArgument, "the deadline of a forwarded call is {} ms, it must be from 1 to {}", left_ms,
                  kMostDeadlineMs);
    }
    invocation.deadline_ms = now_ms + left_ms;
  }
  if (fields->has('M')) {
    auto http = read_http(*fields);
    if (!http) return fail(http.error());
    invocation.http = *std::move(http);
  }
  return call;
}

std::string write_outcome(const Outcome& outcome) {
  const auto place = [](const auto& values, auto value) {
    return std::find(values.begin(), values.end(), value) - values.begin();
  };
  FieldWriter out;
  out.text('i', outcome.request_id)
      .number('k', place(kKinds, outcome.kind))
      .number('s', place(kStarts, outcome.start))
      .number('q', outcome.queue_time.count())
      .number('g', outcome.gpu_time.count())
      .number('u', outcome.gpu.value());
  out.flag('w', outcome.was_streamed);
  if (outcome.first_byte) out.number('b', outcome.first_byte->count());
  if (!outcome.content_type.empty()) out.text('c', outcome.content_type);
  if (!outcome.log_tail.empty()) out.text('l', outcome.log_tail);
  if (!outcome.failure.type.empty()) out.text('y', outcome.failure.type);
  if (!outcome.failure.text.empty()) out.text('z', outcome.failure.text);
  return out.take();
}

Result<Outcome> read_outcome(std::string_view head) {
  const auto fields = Fields::parse(head);
  if (!fields) return fail(fields.error());
  Reader read(*fields);
  const auto kind = read.number<std::size_t>('k'), start = read.number<std::size_t>('s');
  const auto first_byte = read.number<std::int64_t>('b');
  Outcome outcome{.request_id = std::string(fields->text('i')),
                  .was_streamed = fields->flag('w'),
                  .content_type = std::string(fields->text('c')),
                  .failure = {std::string(fields->text('y')), std::string(fields->text('z'))},
                  .log_tail = std::string(fields->text('l')),
                  .queue_time = Duration(read.number<std::int64_t>('q')),
                  .gpu_time = Duration(read.number<std::int64_t>('g')),
                  .gpu = GpuId(read.number<std::uint64_t>('u'))};
  if (!read.status()) return fail(read.status().error());
  if (kind >= kKinds.size() || start >= kStarts.size()) {
    return fail(Errc::kCorrupt, "an outcome is of kind {} and start {}, which there are not", kind, start);
  }
  if (fields->has('b')) outcome.first_byte = Duration(first_byte);
  outcome.kind = kKinds[kind];
  outcome.start = kStarts[start];
  return outcome;
}

std::string write_error(const Error& error) {
  return FieldWriter()
      .text('c', errc_name(error.code))
      .text('m', std::string_view(error.message).substr(0, kMostErrorBytes))
      .take();
}

Error read_error(std::string_view text) {
  const auto fields = Fields::parse(text);
  if (fields) {
    for (const Errc code : kCodes) {
      const std::string_view message = fields->text('m').substr(0, kMostErrorBytes);
      if (errc_name(code) == fields->text('c'))
        return {code, message.empty() ? "no reason given" : std::string(message)};
    }
  }
  return {Errc::kCorrupt, "the answer is no error of a node's"};
}

}  // namespace fairlead
