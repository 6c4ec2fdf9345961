#include "store/postgres/statement_group.h"

#include <gmock/gmock.h>

namespace fairlead::postgres {
namespace {

using enum RowStatement::Type;
const RowStatement kPut{.sql = "put", .columns = {kText, kNumber}};
const RowStatement kFinish{.sql = "finish", .columns = {kText}};

Row put(const std::string& key, std::optional<std::int64_t> number = 7) {
  return {.statement = &kPut, .key = key, .shared = {std::int64_t{5}}, .columns = {key, number}};
}
Row finish(const std::string& key) {
  return {.statement = &kFinish, .key = key, .shared = {}, .columns = {key}};
}

// {statement: what its first array of texts has}, in their order.
std::vector<std::string> outline(StatementGroup& group) {
  constexpr std::size_t kHeader = 20, kLength = 4;
  std::vector<std::string> lines;
  for (const Statement& statement : group.take()) {
    std::string line = statement.sql;
    for (const Value& value : statement.values) {
      if (value.is_number) continue;
      for (std::size_t at = kHeader; at < value.bytes.size();) {
        const std::size_t length = static_cast<unsigned char>(value.bytes[at + kLength - 1]);
        line += " " + value.bytes.substr(at + kLength, length);
        at += kLength + length;
      }
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(StatementGroupTest, RowsOfOneStatementAreWrittenByOne) {
  StatementGroup group;
  const auto e1 = group.add(put("e1"));
  const auto e0 = group.add(finish("e0"));
  const auto e2 = group.add(put("e2"));
  EXPECT_EQ(e1.statement, 0u);
  EXPECT_EQ(e0.statement, 1u);
  EXPECT_EQ(e2.statement, 0u);
  EXPECT_EQ(e2.row, 1u);
  EXPECT_THAT(outline(group), testing::ElementsAre("put e1 e2", "finish e0"));
  EXPECT_TRUE(group.empty());
}

TEST(StatementGroupTest, WhatIsNoRowStaysBehindAllThatCameBefore) {
  StatementGroup group;
  group.add(put("e1"));
  const auto changes = group.add(Statements{{"change", {}}, {"tell", {}}});
  const auto e2 = group.add(put("e2"));
  EXPECT_EQ(changes.statement, 1u);
  EXPECT_EQ(e2.statement, 3u);
  EXPECT_EQ(e2.row, 0u);
  EXPECT_THAT(outline(group), testing::ElementsAre("put e1", "change", "tell", "put e2"));
}

// Also since no statement may write one row twice.
TEST(StatementGroupTest, AKeyThatComesAgainStaysBehindItself) {
  StatementGroup group;
  group.add(put("e1"));
  group.add(finish("e1"));
  group.add(put("e2"));
  group.add(put("e2"));
  EXPECT_THAT(outline(group), testing::ElementsAre("put e1", "finish e1", "put e2", "put e2"));
}

// As array_recv() of PostgreSQL reads them: dimensions, whether a NULL is there, the type, the length, the first index; each with its length.
TEST(StatementGroupTest, ArraysAreAsTheServerReceivesThem) {
  StatementGroup group;
  group.add(put("a", std::nullopt));
  group.add(put(std::string("\0b", 2), -3));
  const Statements statements = group.take();
  ASSERT_EQ(statements.size(), 1u);
  const std::vector<Value>& values = statements[0].values;
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].bytes, "5");
  EXPECT_EQ(values[1].bytes, std::string("\0\0\0\1\0\0\0\0\0\0\0\x19\0\0\0\2\0\0\0\1"
                                         "\0\0\0\1a"
                                         "\0\0\0\2\0b",
                                         31));
  EXPECT_FALSE(values[1].is_number);
  EXPECT_EQ(values[2].bytes, "{NULL,-3}");
  EXPECT_TRUE(values[2].is_number);
}

}  // namespace
}  // namespace fairlead::postgres
