// Back ends by their names: what there is, what is refused, and which one collections get by default.
#include "compute/backends/registry.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace shardrec::compute {
namespace {

std::unique_ptr<Backend> made_by_test(const BackendOptions& options) {
  return backend_named("cpu").make(options);
}

template <class Call>
core::Error error_of(Call call) {
  try {
    call();
  } catch (const core::Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return core::Error(SHARDREC_OK, "");
}

TEST(Registry, NamesWhatThereIsWhereANameIsUnknown) {
  const core::Error error = error_of([] { (void)backend_named("tpu"); });
  EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
  EXPECT_NE(error.sentence().find("\"tpu\""), std::string::npos) << error.sentence();
  EXPECT_NE(error.sentence().find("cpu, cuda"), std::string::npos) << error.sentence();
  EXPECT_TRUE(backend_named("cpu").on_host);
  EXPECT_FALSE(backend_named("cuda").on_host);
}

TEST(Registry, MakesWhatAProgramAddsAndRefusesAnotherOfItsName) {
  constexpr NamedBackend kAdded{.name = "of the test", .on_host = true, .make = made_by_test};
  add_backend(kAdded);
  core::Threads threads(1);
  const auto made = backend_named("of the test").make({.threads = threads});
  EXPECT_TRUE(made->host_reaches_memory());
  EXPECT_EQ(error_of([&] { add_backend(kAdded); }).status(), SHARDREC_INTERNAL);
}

TEST(Registry, RefusesADefaultThatThereIsNot) {
  const std::string_view before = default_backend();
  EXPECT_EQ(error_of([] { set_default_backend("tpu"); }).status(), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(default_backend(), before);
  set_default_backend("cuda");
  EXPECT_EQ(default_backend(), "cuda");
  set_default_backend(before);
}

}  // namespace
}  // namespace shardrec::compute
