#include "store/postgres/statement_group.h"

#include <cstdint>
#include <utility>

#include "base/check.h"

namespace fairlead::postgres {
namespace {

// PostgreSQL's numbers of types (pg_type.dat).
constexpr std::uint32_t kBytea = 17, kText = 25;

void append_big_endian(std::string& bytes, std::uint32_t number) {
  constexpr int kBits = 8;
  for (int shift = 24; shift >= 0; shift -= kBits) bytes.push_back(static_cast<char>(number >> shift));
}

}  // namespace

StatementGroup::Place StatementGroup::add(Row row) {
  const RowStatement& kind = *row.statement;
  FL_CHECK(row.columns.size() == kind.columns.size(), "{} of {} columns", row.columns.size(), kind.columns.size());
  if (keys_.contains(row.key)) close();
  keys_.insert(std::move(row.key));
  const auto [open, is_new] = open_.try_emplace(&kind, statements_.size());
  if (is_new) {
    Pending pending{.rows = 0, .values = std::move(row.shared), .columns = {}, .sql = kind.sql};
    for (const RowStatement::Type type : kind.columns) pending.columns.push_back({.type = type, .elements = {}});
    statements_.push_back(std::move(pending));
  }
  Pending& pending = statements_[open->second];
  for (std::size_t i = 0; i < row.columns.size(); ++i) append(pending.columns[i], row.columns[i]);
  return {.statement = open->second, .row = pending.rows++};
}

StatementGroup::Place StatementGroup::add(Statements statements) {
  close();
  const Place place{.statement = statements_.size(), .row = 0};
  for (Statement& statement : statements) {
    statements_.push_back({.rows = 0, .values = std::move(statement.values), .columns = {}, .sql = statement.sql});
  }
  return place;
}

Statements StatementGroup::take() {
  close();
  Statements all;
  for (Pending& pending : std::exchange(statements_, {})) {
    for (const Column& column : pending.columns) pending.values.push_back(array_of(column, pending.rows));
    all.push_back({pending.sql, std::move(pending.values)});
  }
  return all;
}

void StatementGroup::close() {
  open_.clear();
  keys_.clear();
}

// Numbers as text, {1,NULL}. Others as the server receives arrays: a length before each element, -1 for NULL.
void StatementGroup::append(Column& column, const Value& value) {
  column.has_null |= value.is_null;
  if (column.type == RowStatement::Type::kNumber) {
    column.elements += column.elements.empty() ? "{" : ",";
    column.elements += value.is_null ? "NULL" : value.bytes;
    return;
  }
  append_big_endian(column.elements,
                    value.is_null ? ~std::uint32_t{0} : static_cast<std::uint32_t>(value.bytes.size()));
  if (!value.is_null) column.elements += value.bytes;
}

Value StatementGroup::array_of(const Column& column, std::size_t rows) {
  if (column.type == RowStatement::Type::kNumber) {
    Value array(column.elements + "}");
    array.is_number = true;
    return array;
  }
  constexpr std::uint32_t kDimensions = 1, kFirstIndex = 1;
  std::string bytes;
  append_big_endian(bytes, kDimensions);
  append_big_endian(bytes, column.has_null ? 1 : 0);
  append_big_endian(bytes, column.type == RowStatement::Type::kText ? kText : kBytea);
  append_big_endian(bytes, static_cast<std::uint32_t>(rows));
  append_big_endian(bytes, kFirstIndex);
  return bytes + column.elements;
}

Statements statements_of(Row row) {
  StatementGroup alone;
  alone.add(std::move(row));
  return alone.take();
}

}  // namespace fairlead::postgres
