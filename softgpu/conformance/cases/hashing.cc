// Hash functions, checksums, encodings: known answers where the algorithm has them, else a second implementation.
#include <bit>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

std::vector<unsigned char> random_bytes(std::size_t count, unsigned seed) {
  const auto random = words(count, seed, 256);
  return {random.begin(), random.end()};
}

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
std::vector<unsigned> sha_constants() {
  std::vector<unsigned> constants;
  for (unsigned candidate = 2; constants.size() < 64; ++candidate) {
    bool is_prime = true;
    for (unsigned divisor = 2; divisor * divisor <= candidate; ++divisor) is_prime &= candidate % divisor != 0;
    if (!is_prime) continue;
    // floor(2^32 * cbrt(p)) by bisection in integers.
    unsigned __int128 low = 0, high = static_cast<unsigned __int128>(1) << 36;
    const unsigned __int128 target = static_cast<unsigned __int128>(candidate) << 96;
    while (low + 1 < high) {
      const unsigned __int128 middle = (low + high) / 2;
      (middle * middle * middle <= target ? low : high) = middle;
    }
    constants.push_back(static_cast<unsigned>(low));
  }
  return constants;
}

void sha256(Test& test) {
  const auto constant = test.global<unsigned>("sha_constants");
  const auto constants = sha_constants();
  if (!test.ok()) return;
  test.check(driver().cuMemcpyHtoD(constant.address, constants.data(), 256), "cuMemcpyHtoD");
  const auto digest_of = [&](const std::string& message) {
    const auto out = test.zeros<unsigned>(32 * 8);
    std::vector<unsigned char> messages;
    for (int i = 0; i < 32; ++i) messages.insert(messages.end(), message.begin(), message.end());
    messages.push_back(0);  // so that an empty message has memory
    test.launch("sha256", {1, 32}, static_cast<int>(message.size()), test.upload(messages), out);
    auto digests = test.download(out);
    for (std::size_t i = 8; i < digests.size(); ++i) test.expect(digests[i] == digests[i % 8], "all lanes agree");
    digests.resize(8);
    return digests;
  };
  test.equal("empty", digest_of(""),
             {0xe3b0c442, 0x98fc1c14, 0x9afbf4c8, 0x996fb924, 0x27ae41e4, 0x649b934c, 0xa495991b, 0x7852b855});
  test.equal("abc", digest_of("abc"),
             {0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223, 0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad});
  test.equal("two blocks", digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
             {0x248d6a61, 0xd20638b8, 0xe5c02693, 0x0c3e6039, 0xa33ce459, 0x64ff2167, 0xf6ecedd4, 0x19db06c1});
}

void crc32(Test& test) {
  const int length = 9, messages = 64;
  auto bytes = random_bytes(length * messages, 1);
  std::memcpy(bytes.data(), "123456789", length);
  const auto sums = test.zeros<unsigned>(messages);
  test.launch("crc32", {2, 32}, length, test.upload(bytes), sums);
  std::vector<unsigned> want;
  for (int message = 0; message < messages; ++message) {
    unsigned c = ~0u;
    for (int i = 0; i < 8 * length; ++i) {
      const unsigned bit = (bytes[message * length + i / 8] >> i % 8 ^ c) & 1;
      c = c >> 1 ^ (bit != 0 ? 0xedb88320u : 0);
    }
    want.push_back(~c);
  }
  test.expect(want[0] == 0xcbf43926, "the checksum's known answer");
  test.equal("sums", test.download(sums), want);
}

std::vector<unsigned long long> random_wide(std::size_t count, unsigned seed) {
  std::vector<unsigned long long> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Philox random = philox(i, seed);
    values[i] = static_cast<unsigned long long>(random.word[0]) << 32 | random.word[1];
  }
  return values;
}

void xorshift(Test& test) {
  const int rounds = 100;
  auto values = random_wide(128, 2);
  const auto out = test.zeros<unsigned long long>(values.size());
  test.launch("xorshift", {2, 64}, rounds, test.upload(values), out);
  for (unsigned long long& x : values) {
    for (int i = 0; i < rounds; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
    }
    x *= 0x2545f4914f6cdd1dull;
  }
  test.equal("values", test.download(out), values);
}

unsigned long long siphash_of(unsigned long long k0, unsigned long long k1, const unsigned long long* words) {
  unsigned long long v[] = {k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull, k0 ^ 0x6c7967656e657261ull,
                            k1 ^ 0x7465646279746573ull};
  const auto rounds = [&v](int count) {
    for (int i = 0; i < count; ++i) {
      v[0] += v[1], v[2] += v[3], v[1] = std::rotl(v[1], 13) ^ v[0], v[3] = std::rotl(v[3], 16) ^ v[2];
      v[0] = std::rotl(v[0], 32), v[2] += v[1], v[0] += v[3];
      v[1] = std::rotl(v[1], 17) ^ v[2], v[3] = std::rotl(v[3], 21) ^ v[0], v[2] = std::rotl(v[2], 32);
    }
  };
  for (const unsigned long long m : {words[0], words[1], 16ull << 56}) {
    v[3] ^= m;
    rounds(2);
    v[0] ^= m;
  }
  v[2] ^= 0xff;
  rounds(4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void siphash(Test& test) {
  const unsigned long long k0 = 0x0706050403020100ull, k1 = 0x0f0e0d0c0b0a0908ull;
  auto words = random_wide(2 * 64, 3);
  words[0] = k0, words[1] = k1;  // the sixteenth vector of the algorithm's authors
  const auto out = test.zeros<unsigned long long>(64);
  test.launch("siphash", {2, 32}, k0, k1, test.upload(words), out);
  std::vector<unsigned long long> want;
  for (int i = 0; i < 64; ++i) want.push_back(siphash_of(k0, k1, &words[2 * i]));
  test.expect(want[0] == 0x3f2acc7f57c29bdbull, "the hash's known answer");
  test.equal("hashes", test.download(out), want);
}

void base64(Test& test) {
  const std::string text = "Many hands make light work....", want = "TWFueSBoYW5kcyBtYWtlIGxpZ2h0IHdvcmsuLi4u";
  const int groups = static_cast<int>(text.size()) / 3;
  const auto out = test.zeros<char>(want.size());
  test.launch("base64", {1, 32}, groups, test.upload(std::vector<unsigned char>(text.begin(), text.end())), out);
  test.equal("letters", test.download(out), std::vector<char>(want.begin(), want.end()));
}

void run_lengths(Test& test) {
  const int n = 900;
  auto in = integers(n, 4, 0, 3);
  for (int i = 1; i < n; ++i) {
    if (random_word(5, i) % 3 != 0) in[i] = in[i - 1];
  }
  const auto values = test.zeros<int>(n), lengths = test.zeros<int>(n), count = test.zeros<int>(1);
  test.launch("run_lengths", {1, 1024}, n, test.upload(in), values, lengths, count);
  std::vector<int> want_values, want_lengths;
  for (int i = 0; i < n; ++i) {
    if (i == 0 || in[i] != in[i - 1]) {
      want_values.push_back(in[i]);
      want_lengths.push_back(0);
    }
    ++want_lengths.back();
  }
  test.equal("count", test.download(count), {static_cast<int>(want_values.size())});
  auto got_values = test.download(values), got_lengths = test.download(lengths);
  got_values.resize(want_values.size());
  got_lengths.resize(want_lengths.size());
  test.equal("values", got_values, want_values);
  test.equal("lengths", got_lengths, want_lengths);
}

constexpr Case kCases[] = {
    {"sha256", "hashing", sha256},   {"crc32", "hashing", crc32},   {"xorshift", "hashing", xorshift},
    {"siphash", "hashing", siphash}, {"base64", "hashing", base64}, {"run_lengths", "hashing", run_lengths},
};

}  // namespace

const Field kHashing{"hashing", kCases};

}  // namespace softgpu::conformance
