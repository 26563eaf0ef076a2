#include "sim/base/shared_library.hpp"

#include <gtest/gtest.h>

#include <string>

namespace podsim {
namespace {

TEST(SharedLibrary, FindsAFunctionOfALibrary) {
  const auto library = SharedLibrary::load("libm.so.6", "libc6");
  ASSERT_TRUE(library) << to_text(library.error());
  double (*cosine)(double) = nullptr;
  const Status found = library->find("cos", cosine);
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(cosine(0), 1);
}

TEST(SharedLibrary, ThatIsMissingIsAnErrorThatSaysWhatToInstall) {
  const auto library = SharedLibrary::load("libpodsim_none.so.7", "libpodsim-none7");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().cause, Cause::environment);
  EXPECT_NE(library.error().message.find("libpodsim_none.so.7 cannot be loaded: "), std::string::npos) << library.error().message;
  EXPECT_NE(library.error().message.find("Install libpodsim-none7"), std::string::npos) << library.error().message;
}

TEST(SharedLibrary, OfTheCurrentFolderIsNotLoaded) {
  const auto library = SharedLibrary::load("./libm.so.6", "libc6");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message, "./libm.so.6 cannot be loaded: expected the name of a library or an absolute path");
}

TEST(SharedLibrary, WithoutTheFunctionIsAnErrorThatNamesIt) {
  const auto library = SharedLibrary::load("libm.so.6", "libc6");
  ASSERT_TRUE(library) << to_text(library.error());
  void (*nothing)() = nullptr;
  const Status found = library->find("podsim_no_such_function", nothing);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().cause, Cause::environment);
  EXPECT_EQ(found.error().message, "libm.so.6 has no function podsim_no_such_function: it is another version than podsim was built with");
  EXPECT_EQ(nothing, nullptr);
}

}  // namespace
}  // namespace podsim
