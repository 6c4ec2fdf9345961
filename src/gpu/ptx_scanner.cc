#include "gpu/ptx_scanner.h"

#include <algorithm>

namespace fairlead {

std::size_t PtxScanner::line() const {
  const auto* begin = text_.data();
  return 1 + static_cast<std::size_t>(std::count(begin, begin + begin_, '\n'));
}

bool PtxScanner::skip_comment() {
  const std::string_view sign = text_.substr(at_, 2);
  if (sign == "//") {
    at_ = std::min(text_.find('\n', at_), text_.size());
    return true;
  }
  if (sign != "/*") return false;
  const std::size_t end = text_.find("*/", at_ + 2);
  at_ = end == std::string_view::npos ? text_.size() : end + 2;
  return true;
}

void PtxScanner::skip_string() {
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  at_ = std::min(at_ + 1, text_.size());
}

}  // namespace fairlead
