// Writes the head of an answer. One append per header, no stream, no allocation once the buffer has grown.
#pragma once

#include <string>
#include <string_view>

#include "net/http_server.h"

namespace fairlead::net {

std::string_view reason_phrase(unsigned status);  // "Not Found"; "Unknown" for a status it does not know

// How a client knows where the body ends.
enum class BodyFraming { kLength, kChunked, kUntilClosed };

struct HeadOptions {
  bool close = false;                // announce that the connection ends here
  bool announce_keep_alive = false;  // HTTP/1.0 clients must be told
  BodyFraming framing = BodyFraming::kLength;
};

// Appends the status line and headers of `response`, those of its framing included where the status has a body. Control
// characters in values become spaces: a function must not be able to add headers of its own.
void append_response_head(const HttpResponse& response, HeadOptions options, std::string& out);

bool status_has_body(unsigned status);  // not 1xx, 204, 304

// Appends what stands before a chunk of so many bytes, more than 0; behind them stands kChunkEnd, and behind the last one kLastChunk.
void append_chunk_head(std::size_t bytes, std::string& out);
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace fairlead::net
