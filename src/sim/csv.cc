#include "sim/csv.h"

#include <charconv>
#include <cmath>

namespace fairlead::sim {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

bool parse(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

Result<CsvFile> CsvFile::open(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(Errc::kNotFound, "{}: cannot be read", path);
  return CsvFile(path, std::move(file));
}

bool CsvFile::next() {
  std::string line;
  while (std::getline(file_, line)) {
    ++line_;
    if (line.size() > kLongestLine) line.resize(kLongestLine);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    fields_ = split(line);
    return true;
  }
  return false;
}

Result<double> CsvFile::number(std::size_t column, const std::string& name, double least, double most) const {
  double value = 0;
  if (column >= fields_.size()) return error(fmt::format("{} is missing", name));
  if (!parse(fields_[column], value) || value < least || value > most) {
    return error(fmt::format("{} is \"{}\", it must be a number from {} to {}", name, fields_[column], least, most));
  }
  return value;
}

bool CsvFile::is_number(std::size_t column) const {
  double value = 0;
  return column < fields_.size() && parse(fields_[column], value);
}

void CsvFile::use_as_heading() {
  for (std::size_t i = 0; i < fields_.size(); ++i) columns_[fields_[i]] = i;
}

Result<std::size_t> CsvFile::column(const std::string& name) const {
  const auto found = columns_.find(name);
  if (found == columns_.end()) return error(fmt::format("column {} is missing", name));
  return found->second;
}

tl::unexpected<Error> CsvFile::error(const std::string& what) const {
  return fail(Errc::kInvalidArgument, "{}:{}: {}", path_, line_, what);
}

}  // namespace fairlead::sim
