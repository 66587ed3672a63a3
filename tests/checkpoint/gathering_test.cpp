// What was added to a checkpoint: its names, host tensors, and the contents of a commit or load.
#include "checkpoint/contents/gathering.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "checkpoint/contents/names.h"
#include "checkpoint/world.h"
#include "core/tensor.h"

namespace shardrec::checkpoint {
namespace {

template <class Body>
core::Error error_of(const Body& body) {
  try {
    body();
  } catch (const core::Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {SHARDREC_OK, ""};
}

TEST(Names, AreTextsOf1To255BytesWithoutASlash) {
  const std::string longest(255, 'n');
  EXPECT_EQ(checked_name(longest, EmptyName::kRefused), longest);
  EXPECT_EQ(checked_name("", EmptyName::kAccepted), "");
  for (const std::string& bad : {std::string(), std::string("a/b"), longest + "n"}) {
    const core::Error error = error_of([&] { checked_name(bad, EmptyName::kRefused); });
    EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(error.sentence().find("1 to 255 bytes without '/'"), std::string::npos);
  }
}

TEST(Names, StandForOneThingUntilTheyAreFreed) {
  UsedNames names;
  names.take("a");
  EXPECT_EQ(error_of([&] { names.take("a"); }).status(), SHARDREC_INVALID_ARGUMENT);
  names.require_free("b");
  names.free("a");
  names.take("a");
}

// A view of numbers, as a host gives it.
shardrec_tensor view_of(std::vector<int64_t>& numbers) {
  const std::array<int64_t, 1> shape{static_cast<int64_t>(numbers.size())};
  return core::compact_view(numbers.data(), SHARDREC_INT64, shape);
}

TEST(HostTensors, AreCopiesThatGiveTheirNamesBack) {
  HostTensors tensors;
  UsedNames names;
  names.take("table");
  std::vector<int64_t> numbers = {1, 2, 3};
  const shardrec_tensor view = view_of(numbers);
  tensors.set("b", &view, names);
  tensors.set("a", &view, names);
  numbers = {4, 5, 6};
  const shardrec_tensor again = view_of(numbers);
  tensors.set("b", &again, names);

  const std::vector<ItemContents> items = tensors.items();
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].name, "a");
  EXPECT_EQ(items[1].name, "b");
  EXPECT_EQ(items[0].tensors.front().shape, (std::vector<int64_t>{3}));
  const auto first = [](const ItemContents& item) {
    int64_t value = 0;
    std::memcpy(&value, item.tensors.front().data, sizeof value);
    return value;
  };
  EXPECT_EQ(first(items[0]), 1);
  EXPECT_EQ(first(items[1]), 4);

  EXPECT_EQ(error_of([&] { tensors.set("table", &view, names); }).status(),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(error_of([&] { tensors.erase("table", names); }).status(), SHARDREC_NOT_FOUND);
  EXPECT_EQ(error_of([&] { names.take("a"); }).status(), SHARDREC_INVALID_ARGUMENT);
  tensors.erase("a", names);
  names.take("a");
  EXPECT_FALSE(tensors.empty());
}

TEST(Gathering, OfNothingIsRefused) {
  Gathering gathering;
  HostTensors tensors;
  UsedNames names;
  EXPECT_EQ(error_of([&] { (void)gathering.to_save(tensors); }).status(), SHARDREC_INVALID_STATE);
  EXPECT_EQ(error_of([&] { (void)gathering.to_load(); }).status(), SHARDREC_INVALID_STATE);
  std::vector<int64_t> numbers = {7};
  const shardrec_tensor view = view_of(numbers);
  tensors.set("position", &view, names);
  EXPECT_EQ(gathering.to_save(tensors).items.size(), 1U);
  EXPECT_EQ(error_of([&] { (void)gathering.to_load(); }).status(), SHARDREC_INVALID_STATE);
}

// A collection, a stack and a reducer of one rank.
TEST(Gathering, HasCollectionsThenLayersThenParametersThenHostTensors) {
  expect_ok(comm::run_ranks(1, [](comm::Communicator& communicator) {
    const plan::Model model = model_of({{10, 4}});
    const plan::Plan plan =
        planner::make_plan(model, {.ranks = 1, .ranks_per_node = 1}, SHARDREC_SHARDING_TABLE_WISE);
    const std::shared_ptr<comm::Communicator> shared(&communicator, [](auto*) {});
    training::Tables tables(shared, model, plan, {});
    dense::Mlp mlp(3, {});
    mlp.add_linear(2, SHARDREC_ACTIVATION_NONE);
    std::vector<float> values(5, 1.5F);
    std::vector<float> gradient(5);
    dense::Ddp ddp(shared, {});
    ddp.add("p", {5}, {.data = values.data(), .size = 5, .dtype = SHARDREC_FLOAT32},
            {.data = gradient.data(), .size = 5, .dtype = SHARDREC_FLOAT32});
    HostTensors tensors;
    UsedNames names;
    std::vector<int64_t> numbers = {7};
    const shardrec_tensor view = view_of(numbers);
    tensors.set("position", &view, names);

    Gathering gathering;
    gathering.add("parameters", ddp);
    gathering.add("layers", mlp, communicator);
    gathering.add("tables", tables);
    const Contents saved = gathering.to_save(tensors);
    ASSERT_EQ(saved.collections.size(), 1U);
    EXPECT_EQ(saved.collections.front().name, "tables");
    ASSERT_EQ(saved.items.size(), 3U);
    EXPECT_EQ(saved.items[0].name, "layers");
    EXPECT_EQ(saved.items[0].description, LayersState(mlp, nullptr).description());
    EXPECT_EQ(saved.items[1].name, "parameters");
    EXPECT_EQ(saved.items[1].tensors.front().data, std::as_bytes(std::span(values)).data());
    EXPECT_EQ(saved.items[2].name, "position");

    // A load finds no host tensors, fills numbers of its own, and apply() makes them count.
    Contents wanted = gathering.to_load();
    ASSERT_EQ(wanted.items.size(), 2U);
    gathering.begin_filling(wanted);
    EXPECT_THROW((void)gathering.to_save(tensors), core::Error);
    wanted.collections.front().step = 42;
    for (DenseTensor& tensor : wanted.items[0].tensors) {
      const int64_t steps = 9;
      if (tensor.name == "steps") std::memcpy(tensor.data, &steps, sizeof steps);
    }
    EXPECT_EQ(mlp.parameters().steps(), 0);
    gathering.apply(wanted);
    EXPECT_EQ(mlp.parameters().steps(), 9);
    EXPECT_EQ(tables.collection().step(), 42);
    EXPECT_EQ(gathering.to_save(tensors).collections.front().step, 42);
  }));
}

}  // namespace
}  // namespace shardrec::checkpoint
