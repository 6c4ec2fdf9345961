#include "edge/lambda/event_stream.h"

#include <boost/crc.hpp>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr char kString = 7;

void add_number(std::string& out, std::size_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xff);
}

void add_header(std::string& out, std::string_view name, std::string_view value) {
  add_number(out, name.size(), 1);
  out += name;
  out += kString;
  add_number(out, value.size(), 2);
  out += value;
}

std::size_t crc_of(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace

std::string event_stream_message(std::string_view event_type, std::string_view content_type, std::string_view payload) {
  FL_CHECK(payload.size() <= kMaxEventPayloadBytes, "{} bytes in one message", payload.size());
  std::string headers;
  add_header(headers, ":event-type", event_type);
  add_header(headers, ":content-type", content_type);
  add_header(headers, ":message-type", "event");
  std::string out;
  out.reserve(16 + headers.size() + payload.size());
  add_number(out, 16 + headers.size() + payload.size(), 4);
  add_number(out, headers.size(), 4);
  add_number(out, crc_of(out), 4);
  out += headers;
  out += payload;
  add_number(out, crc_of(out), 4);
  return out;
}

}  // namespace fairlead
