// Text in columns for people: a heading, rows, two spaces between columns, no trailing blanks.
//
//   NAME     QUEUED  VT
//   resize        3  12.5 s
#pragma once

#include <string>
#include <vector>

namespace fairlead::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string heading;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: one cell per column. Control characters are shown as '?': cells may hold what others wrote.
  void add_row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string text() const;  // ends with a newline

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fairlead::cli
