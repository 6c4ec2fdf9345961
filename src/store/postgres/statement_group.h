// Operations of one transaction, of which those that write a row each to the same table become one statement: the server plans, locks and
// answers once for all of them.
//
//   put e1, finish e0, put e2, put a function, put e3   ->   put {e1, e2}; finish {e0}; put a function; put {e3}
//
// Order: rows with different keys may change places, since neither reads what the other writes. A key that comes again, and statements that
// are no row, keep their place behind all that came before.
// Pure: no connection, no clock. Threads: one at a time.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/connection.h"

namespace fairlead::postgres {

using Statements = std::vector<Statement>;

// A statement over rows. Its parameters: what all rows share, then an array for each column.
struct RowStatement {
  enum class Type { kText, kBytes, kNumber };
  const char* sql;
  std::vector<Type> columns;
};

// One operation's row of it.
struct Row {
  const RowStatement* statement;  // a constant
  std::string key;                // rows of one key, of whichever statement, keep their order
  std::vector<Value> shared;      // REQUIRES: the same in all rows of a transaction
  std::vector<Value> columns;     // as many as the statement has
};

class StatementGroup {
 public:
  // Where the answer to an operation is found.
  struct Place {
    std::size_t statement = 0;  // the first one of it
    std::size_t row = 0;        // among those that were asked for by that statement
  };

  Place add(Row row);
  Place add(Statements statements);
  bool empty() const { return statements_.empty(); }
  Statements take();  // leaves it empty

 private:
  struct Column {
    RowStatement::Type type;
    std::string elements;
    bool has_null = false;
  };
  struct Pending {  // of one statement
    std::size_t rows = 0;
    std::vector<Value> values;  // what is shared; all values, where it is no statement over rows
    std::vector<Column> columns;
    const char* sql;
  };

  static void append(Column& column, const Value& value);
  static Value array_of(const Column& column, std::size_t rows);
  void close();  // what follows comes after all that was added

  std::vector<Pending> statements_;
  std::map<const RowStatement*, std::size_t> open_;  // which one takes another row
  std::set<std::string, std::less<>> keys_;          // in those
};

Statements statements_of(Row row);  // of it alone

}  // namespace fairlead::postgres
