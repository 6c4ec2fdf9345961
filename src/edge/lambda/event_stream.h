// Messages of AWS's event stream encoding, which Lambda answers InvokeWithResponseStream in.
//
//   total bytes (4) | header bytes (4) | CRC-32 of these (4) | headers | payload | CRC-32 of all before (4)
//   header: name length (1) | name | 7, a string | value length (2) | value
//
// Numbers are big-endian; the CRC is zlib's. Example: a PayloadChunk of "hi" has 12 + 84 + 2 + 4 bytes.
// Source: Smithy, "Amazon Event Stream Specification". Pure.
#pragma once

#include <string>
#include <string_view>

namespace fairlead {

// The longest payload of one message, 16 MiB, less its headers.
inline constexpr std::size_t kMaxEventPayloadBytes = (std::size_t{16} << 20) - 1024;

// REQUIRES: payload is at most kMaxEventPayloadBytes; event_type and content_type are short.
std::string event_stream_message(std::string_view event_type, std::string_view content_type, std::string_view payload);

}  // namespace fairlead
