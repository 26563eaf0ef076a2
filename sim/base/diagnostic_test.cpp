#include "sim/base/diagnostic.hpp"

#include <gmock/gmock.h>

#include "sim/base/expected.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DiagnosticText, NamesAsMuchOfThePlaceAsIsKnown) {
  EXPECT_EQ(to_text(Diagnostic{{"m.textproto", 14, 9}, "no"}), "m.textproto:14:9: no");
  EXPECT_EQ(to_text(Diagnostic{{"m.textproto", 14, 0}, "no"}), "m.textproto:14: no");
  EXPECT_EQ(to_text(Diagnostic{{"--slice", 0, 0}, "no"}), "--slice: no");
  EXPECT_EQ(to_text(Diagnostic{{}, "no"}), "no");
}

TEST(DiagnosticText, ListsKeepTheirOrder) {
  EXPECT_EQ(to_text(std::vector<Diagnostic>{{{"b", 2, 1}, "x"}, {{"a", 1, 1}, "y"}}), "b:2:1: x\na:1:1: y\n");
  EXPECT_EQ(to_text(std::vector<Diagnostic>{}), "");
}

TEST(Quoted, EscapesWhatATerminalWouldActOn) {
  EXPECT_EQ(quoted("16x16"), "\"16x16\"");
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted("a\nb\tc"), R"("a\nb\tc")");
  EXPECT_EQ(quoted(std::string_view("\x1b[31m\0\x7f\xc3\xa9", 9)), R"("\x1b[31m\x00\x7f\xc3\xa9")");
}

TEST(Quoted, CutsWhatNobodyWouldRead) {
  EXPECT_EQ(quoted(std::string(120, 'a')), '"' + std::string(120, 'a') + '"');
  EXPECT_EQ(quoted(std::string(5000, 'a')), '"' + std::string(120, 'a') + "\"... (5000 bytes)");
}

TEST(Nearest, PutsTheFewestEditsFirst) {
  const std::vector<std::string> machines = {"tpu_v3", "tpu_v4", "tpu_v5e", "tpu_v5p", "dgx_h100", "ideal"};
  EXPECT_THAT(nearest("tpu_v5", machines), ElementsAre("tpu_v5e", "tpu_v5p", "tpu_v3"));
  EXPECT_THAT(nearest("tpu_v5", machines, 5), ElementsAre("tpu_v5e", "tpu_v5p", "tpu_v3", "tpu_v4"));
  EXPECT_THAT(nearest("ideel", machines), ElementsAre("ideal"));
  EXPECT_THAT(nearest("IDEAL", machines), ElementsAre("ideal"));
}

TEST(Nearest, TheBeginningOfAWordIsNearerThanAnotherWord) {
  EXPECT_THAT(nearest("--mach", {"--mesh", "--batch", "--machine"}, 1), ElementsAre("--machine"));
}

TEST(Nearest, SwappedNeighboursAreOneEdit) { EXPECT_THAT(nearest("rwo", {"row", "rows", "two"}), ElementsAre("row", "two", "rows")); }

TEST(Nearest, FindsTheFullPathOfAPiece) {
  EXPECT_THAT(nearest("bandwidth", {"link.bandwidth", "software.per_message"}), ElementsAre("link.bandwidth"));
}

TEST(Nearest, OffersNothingUnrelated) {
  EXPECT_THAT(nearest("zzz", {"row", "col"}), IsEmpty());
  EXPECT_THAT(nearest("", {"a"}), IsEmpty());
  EXPECT_THAT(nearest(std::string(100'000, 'a'), {"a"}), IsEmpty());
}

TEST(DidYouMean, ReadsAsTheEndOfASentence) {
  EXPECT_EQ(did_you_mean("rwo", {"row", "col"}), ", did you mean \"row\"?");
  EXPECT_EQ(did_you_mean("ro", {"row", "rod"}), ", did you mean \"row\" or \"rod\"?");
  EXPECT_EQ(did_you_mean("ro", {"row", "rod", "rot"}), ", did you mean \"row\", \"rod\" or \"rot\"?");
  EXPECT_EQ(did_you_mean("zzz", {"row"}), "");
}

TEST(ExpectedValue, HoldsEitherAValueOrADiagnostic) {
  const Expected<int> value = 3;
  const Expected<int> error = Diagnostic{{"f", 1, 2}, "bad"};
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 3);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().message, "bad");
  EXPECT_TRUE(success());
  EXPECT_THAT([&] { static_cast<void>(*error); }, ::testing::ThrowsMessage<InternalError>(::testing::HasSubstr("has_value")));
}

}  // namespace
}  // namespace podsim
