#include "runtime/egress/dns_message.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using namespace std::string_literals;

// Of the internet, for a name of these labels.
std::string asks(const std::string& labels, unsigned kind = 1) {
  return "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"s + labels + "\0\0"s + static_cast<char>(kind) + "\0\x01"s;
}

TEST(DnsMessage, AQuestionIsRead) {
  const auto read = read_dns_question(asks("\x04PyPI\x03org"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "pypi.org");
  EXPECT_EQ(read->kind, DnsKind::kAddress4);
  EXPECT_EQ(read_dns_question(asks("\x01"
                                   "a",
                                   28))
                ->kind,
            DnsKind::kAddress6);
  EXPECT_EQ(read_dns_question(asks("\x01"
                                   "a",
                                   16))
                ->kind,
            DnsKind::kOther);
  EXPECT_EQ(read_dns_question(asks(""))->name, "");
}

TEST(DnsMessage, WhatFollowsTheQuestionIsPassedOver) {
  const auto read = read_dns_question(asks("\x01"
                                           "a") +
                                      "\0\0\x29\x10\0\0\0\0\0\0\0"s);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->head, asks("\x01"
                             "a"));
}

TEST(DnsMessage, WhatIsNoQuestionIsNotAnswered) {
  const std::string good = asks(
      "\x01"
      "a");
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(read_dns_question(good.substr(0, size))) << size;
  for (const std::string& name : {"\xc0\x0c"s, "\x40"s + std::string(64, 'a'),
                                  "\x03"
                                  "a.b"s,
                                  "\x02"
                                  "a"s,
                                  "\x01\0"s, "\x01\x80"s}) {
    EXPECT_FALSE(read_dns_question(asks(name))) << name;
  }
  std::string long_name;
  for (int i = 0; i < 5; ++i) long_name += "\x3f" + std::string(63, 'a');
  EXPECT_FALSE(read_dns_question(asks(long_name)));
  std::string answer = good, two = good, status = good;
  answer[2] = static_cast<char>(0x81);
  EXPECT_FALSE(read_dns_question(answer));
  two[5] = 2;
  EXPECT_FALSE(read_dns_question(two));
  status[2] = 0x10;
  EXPECT_FALSE(read_dns_question(status));
  EXPECT_FALSE(read_dns_question(good + std::string(600, '\0')));
}

TEST(DnsMessage, AnAnswerHasTheAddressesOfItsFamily) {
  const auto read =
      read_dns_question(asks("\x01"
                             "a"));
  const std::vector<IpAddress> addresses = {*IpAddress::parse("8.8.4.4"), *IpAddress::parse("2606::1")};
  const std::string answer = dns_answer(*read, DnsVerdict::kFound, addresses);
  EXPECT_EQ(answer, "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"s +
                        "\x01"
                        "a\0\0\x01\0\x01"s +
                        "\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x08\x08\x04\x04"s);
  const std::string other = dns_answer(*read_dns_question(asks("\x01"
                                                               "a",
                                                               28)),
                                       DnsVerdict::kFound, addresses);
  EXPECT_EQ(other.substr(other.size() - 18), "\0\x10\x26\x06"s + std::string(13, '\0') + "\x01");
  EXPECT_EQ(dns_answer(*read, DnsVerdict::kNoSuchName, {}).substr(2, 2), "\x81\x83"s);
}

TEST(DnsMessage, AnAnswerHasABound) {
  std::string name;
  for (int i = 0; i < 3; ++i) name += "\x3f" + std::string(63, 'a');
  const std::vector<IpAddress> many(100, *IpAddress::parse("2606::1"));
  for (const unsigned kind : {1u, 28u}) {
    EXPECT_LE(dns_answer(*read_dns_question(asks(name, kind)), DnsVerdict::kFound, many).size(), kMostDnsBytes);
  }
  const std::string answer = dns_answer(*read_dns_question(asks("\x01"
                                                                "a",
                                                                28)),
                                        DnsVerdict::kFound, many);
  EXPECT_LE(answer.size(), kMostDnsBytes);
  EXPECT_GE(answer[7], 8);
}

}  // namespace
}  // namespace fairlead
