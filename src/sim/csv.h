// Comma-separated files line by line, with errors that name the file, the line and the field. Quotes around a field are
// taken off; a comma within quotes belongs to the field.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead::sim {

class CsvFile {
 public:
  static Result<CsvFile> open(const std::string& path);

  // The next line that is not empty; false at the end.
  bool next();
  std::size_t size() const { return fields_.size(); }
  const std::string& text(std::size_t column) const { return fields_[column]; }  // REQUIRES: column < size()
  const std::vector<std::string>& fields() const { return fields_; }
  // From `least` to `most`. Missing fields are errors too.
  Result<double> number(std::size_t column, const std::string& name, double least, double most) const;
  bool is_number(std::size_t column) const;

  // Takes the present line as the names of the columns.
  void use_as_heading();
  // kInvalidArgument names the column that is missing.
  Result<std::size_t> column(const std::string& name) const;

  tl::unexpected<Error> error(const std::string& what) const;

 private:
  explicit CsvFile(std::string path, std::ifstream file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::ifstream file_;
  std::size_t line_ = 0;
  std::vector<std::string> fields_;
  std::map<std::string, std::size_t> columns_;
};

}  // namespace fairlead::sim
