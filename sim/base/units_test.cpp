#include "sim/base/units.hpp"

#include <cmath>

#include <gmock/gmock.h>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;

const SourceLocation here{"m", 14, 9};

double seconds(std::string_view text) { return parse_seconds(text, here)->count(); }
std::int64_t bytes(std::string_view text) { return parse_bytes(text, here)->count(); }
double rate(std::string_view text) { return parse_bytes_per_second(text, here)->count(); }
double flops(std::string_view text) { return parse_flops_per_second(text, here)->count(); }

TEST(Parse, WithOrWithoutOneSpace) {
  EXPECT_EQ(rate("45GB/s"), 45e9);
  EXPECT_EQ(rate("45 GB/s"), 45e9);
  EXPECT_FALSE(parse_bytes_per_second("45  GB/s", here));
  EXPECT_FALSE(parse_bytes_per_second(" 45 GB/s", here));
  EXPECT_FALSE(parse_bytes_per_second("45 GB/s ", here));
}

TEST(Parse, GBIsDecimalAndGiBIsBinary) {
  EXPECT_EQ(bytes("1 GB"), 1'000'000'000);
  EXPECT_EQ(bytes("1 GiB"), 1 << 30);
  EXPECT_EQ(rate("1 GiB/s"), 1073741824.0);
  EXPECT_EQ(bytes("16MiB"), 16 << 20);
}

TEST(Parse, TheValueIsTheNearestDoubleOfTheWrittenDecimal) {
  EXPECT_EQ(seconds("1.1 us"), 1.1e-6);
  EXPECT_EQ(seconds("0.3 ns"), 0.3e-9);
  EXPECT_EQ(seconds("2.5e3 us"), 2.5e-3);
  EXPECT_EQ(seconds("1E-3 ms"), 1e-6);
  EXPECT_EQ(flops("918.1 TFLOP/s"), 918.1e12);
  EXPECT_EQ(seconds("0 s"), 0);
  EXPECT_FALSE(std::signbit(seconds("-0 s")));
}

TEST(ParseBytes, IsExactBeyondDoubles) {
  EXPECT_EQ(bytes("9007199254740993 B"), 9007199254740993);
  EXPECT_EQ(bytes("9007199254740993 kB"), 9007199254740993000);
  EXPECT_EQ(bytes("9223372036854775807B"), 9223372036854775807);
  EXPECT_EQ(bytes("1.5 kB"), 1500);
  EXPECT_EQ(bytes("0.5 KiB"), 512);
}

TEST(ParseBytes, RefusesPartsOfBytesAndMoreThan63Bits) {
  EXPECT_EQ(to_text(parse_bytes("1.5 B", here).error()), "m:14:9: an amount of data must be whole bytes, got \"1.5 B\"");
  EXPECT_THAT(parse_bytes("9223372036854775808 B", here).error().message, HasSubstr("below 2^63"));
  EXPECT_THAT(parse_bytes("1e10 TB", here).error().message, HasSubstr("below 2^63"));
}

TEST(ParseFlops, IsAnAmountWithItsUnit) {
  EXPECT_EQ(parse_flops("2.5 TFLOP", here)->count(), 2.5e12);
  EXPECT_EQ(parse_flops("0FLOP", here)->count(), 0);
  EXPECT_EQ(to_text(parse_flops("2", here).error()),
            "m:14:9: an amount of work needs a unit (FLOP, kFLOP, MFLOP, GFLOP, TFLOP, PFLOP, EFLOP, ZFLOP), got \"2\"");
  EXPECT_THAT(parse_flops("2 TFLOP/s", here).error().message, HasSubstr("did you mean \"TFLOP\""));
}

TEST(ParseRate, AsksForTheUnit) {
  EXPECT_EQ(to_text(parse_bytes_per_second("45", here).error()),
            "m:14:9: a bandwidth needs a unit (B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s, PiB/s), got \"45\"");
}

TEST(ParseRate, OffersTheNearUnit) {
  EXPECT_THAT(parse_bytes_per_second("45 gb/s", here).error().message, HasSubstr("got \"45 gb/s\", did you mean \"GB/s\""));
  EXPECT_THAT(parse_flops_per_second("45 TFLOPS/s", here).error().message, HasSubstr("did you mean \"TFLOP/s\""));
  EXPECT_THAT(parse_seconds("1 usec", here).error().message, HasSubstr("did you mean \"us\""));
  EXPECT_FALSE(parse_seconds("1 GB", here));
}

TEST(ParseRate, SaysWhatBitsAreInBytes) {
  EXPECT_THAT(parse_bytes_per_second("100Gb/s", here).error().message, ::testing::EndsWith("got \"100Gb/s\"; 100 Gb/s are 12.5 GB/s"));
  EXPECT_THAT(parse_bytes_per_second("400 Gbit/s", here).error().message, ::testing::EndsWith("; 400 Gbit/s are 50 GB/s"));
  EXPECT_THAT(parse_bytes_per_second("200Gbps", here).error().message, ::testing::EndsWith("; 200 Gbps are 25 GB/s"));
  EXPECT_THAT(parse_bytes("8 Mb", here).error().message, ::testing::EndsWith("; 8 Mb are 1 MB"));
}

TEST(ParseRate, MayBeUnlimitedButNotZero) {
  EXPECT_TRUE(is_unlimited(*parse_bytes_per_second("unlimited", here)));
  EXPECT_TRUE(is_unlimited(*parse_flops_per_second("unlimited", here)));
  EXPECT_EQ(parse_bytes_per_second("0 GB/s", here).error().message, "a bandwidth must be positive, got \"0 GB/s\"");
  EXPECT_THAT(parse_bytes_per_second("unlimted", here).error().message, HasSubstr("\"unlimited\" is allowed"));
  EXPECT_FALSE(parse_seconds("unlimited", here));
  EXPECT_FALSE(parse_bytes("unlimited", here));
}

TEST(Parse, RefusesWhatIsNoFiniteNumber) {
  for (const char* text : {"", "s", "inf s", "nan s", "1e999 s", "-inf s", "+1 s", "0x10 s", "1,5 s", "--1 s", "1e-400 s", "0e99999 s", "1e20000 s"})
    EXPECT_FALSE(parse_seconds(text, here)) << text;
  EXPECT_FALSE(parse_flops_per_second("1e300 EFLOP/s", here));
  EXPECT_FALSE(parse_bytes_per_second("1e308 PiB/s", here));
  EXPECT_EQ(parse_seconds("-1 us", here).error().message, "a time must not be negative, got \"-1 us\"");
  EXPECT_FALSE(parse_bytes("-1 B", here));
  EXPECT_FALSE(parse_bytes_per_second("-1 GB/s", here));
}

TEST(ParseNumber, TakesNoUnit) {
  EXPECT_EQ(*parse_number("0.85", here), 0.85);
  EXPECT_EQ(*parse_number("-3e2", here), -300);
  EXPECT_EQ(to_text(parse_number("0.85 s", here).error()), "m:14:9: expected a number without a unit, got \"0.85 s\"");
  for (const char* text : {"", "x", "nan", "inf", "1 ", "0e99999"}) EXPECT_FALSE(parse_number(text, here)) << text;
}

TEST(ParseInteger, TakesWholeNumbersOfItsRangeOnly) {
  EXPECT_EQ(*parse_integer("1", 1, 3, here), 1);
  EXPECT_EQ(*parse_integer("3", 1, 3, here), 3);
  EXPECT_EQ(*parse_integer("-2", -3, 3, here), -2);
  EXPECT_EQ(to_text(parse_integer("4", 1, 3, here).error()), "m:14:9: expected a whole number from 1 to 3, got \"4\"");
  EXPECT_EQ(parse_integer("0", 1, INT64_MAX, here).error().message, "expected a whole number, at least 1, got \"0\"");
  for (const char* text : {"", "x", "1.5", "1e3", "1 s", " 1", "+1", "99999999999999999999"})
    EXPECT_FALSE(parse_integer(text, INT64_MIN, INT64_MAX, here)) << text;
}

TEST(Text, FourDigitsAndTheUnitThatFits) {
  EXPECT_EQ(to_text(Seconds{1.23456e-6}), "1.235 us");
  EXPECT_EQ(to_text(Seconds{0}), "0 s");
  EXPECT_EQ(to_text(Seconds{0.25e-12}), "0.25 ps");
  EXPECT_EQ(to_text(Seconds{0.9999}), "999.9 ms");
  EXPECT_EQ(to_text(Seconds{0.99996}), "1 s");  // rounding carries into the next unit
  EXPECT_EQ(to_text(Seconds{123456}), "123456 s");
  EXPECT_EQ(to_text(Seconds{-2e-6}), "-2 us");
  EXPECT_EQ(to_text(Bytes{999}), "999 B");
  EXPECT_EQ(to_text(Bytes{16 << 20}), "16.78 MB");
  EXPECT_EQ(to_text(BytesPerSecond{45e9}), "45 GB/s");
  EXPECT_EQ(to_text(FlopsPerSecond{5e6}), "5 MFLOP/s");
  EXPECT_EQ(to_text(FlopsPerSecond{918e12}), "918 TFLOP/s");
  EXPECT_EQ(to_text(unlimited<BytesPerSecond>), "unlimited");
  EXPECT_EQ(to_text(Picoseconds{5607405187}), "5607405187 ps");
  EXPECT_EQ(to_text(Flops{1.0768e16}), "10.77 PFLOP");
  EXPECT_EQ(bytes_text(8.796e13), "87.96 TB");
  EXPECT_EQ(bytes_text(15.73e6), "15.73 MB");
}

TEST(ExactText, IsShortAndReadable) {
  EXPECT_EQ(to_exact_text(BytesPerSecond{4.5e10}), "45 GB/s");
  EXPECT_EQ(to_exact_text(BytesPerSecond{1073741824}), "1 GiB/s");
  EXPECT_EQ(to_exact_text(unlimited<FlopsPerSecond>), "unlimited");
  EXPECT_EQ(to_exact_text(Seconds{4.5e-6}), "4.5 us");
  EXPECT_EQ(to_exact_text(Seconds{0.1}), "0.1 s");
  EXPECT_EQ(to_exact_text(Bytes{1500}), "1.5 kB");
  EXPECT_EQ(to_exact_text(Bytes{1536}), "1536 B");
  EXPECT_EQ(to_exact_text(Bytes{16 << 20}), "16 MiB");
  EXPECT_EQ(to_exact_text(Bytes{0}), "0 B");
  EXPECT_EQ(to_exact_text(Bytes{INT64_MAX}), "9223372036854775807 B");
  EXPECT_EQ(to_exact_text(BytesPerSecond{1307607350504.8179}), "1.3076073505048179 TB/s") << "no digit lost, and readable";
}

// Any bit pattern of a positive finite double, weighted towards values a machine file might hold.
double any_double(Rng& rng) {
  switch (rng.below(3)) {
    case 0: return std::ldexp(rng.uniform() + 1e-300, rng.between(-40, 60));
    case 1: return rng.between(1, 9999) * std::pow(10.0, rng.between(-13, 15));
    default: return std::ldexp(1.0, rng.between(-40, 60));
  }
}

TEST(ExactText, ParsesBackToTheSameValue) {
  Rng rng{1};
  for (int i = 0; i < 20'000; ++i) {
    const double value = any_double(rng);
    const std::string time = to_exact_text(Seconds{value}), data_rate = to_exact_text(BytesPerSecond{value});
    ASSERT_EQ(seconds(time), value) << time;
    ASSERT_EQ(rate(data_rate), value) << data_rate;
    ASSERT_EQ(flops(to_exact_text(FlopsPerSecond{value})), value);
    ASSERT_EQ(time.find('e'), std::string::npos);
    std::int64_t count = static_cast<std::int64_t>(rng.next() >> rng.between(1, 62));
    if (rng.below(2) == 0) count = count / 1000 * 1000;
    const std::string data = to_exact_text(Bytes{count});
    ASSERT_EQ(bytes(data), count) << data;
  }
}

}  // namespace
}  // namespace podsim
