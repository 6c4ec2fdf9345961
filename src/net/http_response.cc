#include "net/http_response.h"

#include <algorithm>
#include <charconv>

namespace fairlead::net {

namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

void append_number(std::size_t number, std::string& out, int base = 10) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
  out.append(digits, end);
}

void append_framing(const HttpResponse& response, BodyFraming framing, std::string& out) {
  if (framing == BodyFraming::kChunked) out.append("Transfer-Encoding: chunked\r\n");
  if (framing != BodyFraming::kLength) return;
  out.append("Content-Length: ");
  append_number(response.body.size(), out);
  out.append("\r\n");
}

}  // namespace

std::string_view reason_phrase(unsigned status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 206: return "Partial Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Unknown";
  }
}

bool status_has_body(unsigned status) {
  return status >= 200 && status != 204 && status != 304;
}

void append_response_head(const HttpResponse& response, HeadOptions options, std::string& out) {
  out.append("HTTP/1.1 ");
  append_number(response.status, out);
  out.push_back(' ');
  out.append(reason_phrase(response.status));
  out.append("\r\n");
  for (const Header& header : response.headers) {
    out.append(header.name);
    out.append(": ");
    const std::size_t value = out.size();
    out.append(header.value);
    std::replace_if(out.begin() + static_cast<std::ptrdiff_t>(value), out.end(), is_control, ' ');
    out.append("\r\n");
  }
  if (status_has_body(response.status)) append_framing(response, options.framing, out);
  if (options.close) {
    out.append("Connection: close\r\n");
  } else if (options.announce_keep_alive) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

void append_chunk_head(std::size_t bytes, std::string& out) {
  append_number(bytes, out, 16);
  out.append("\r\n");
}

}  // namespace fairlead::net
