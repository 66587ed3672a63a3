// Descriptions of stacks of layers in checkpoints: what is written, what is read, what is refused.
#include "checkpoint/contents/layers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace shardrec::checkpoint {
namespace {

using dense::LayerShape;

std::string described(const std::string& layers, const std::string& inputs = "6") {
  std::string optimizer = plan::optimizer_to_json({});
  std::string quoted;
  for (const char c : optimizer) {
    if (c == '"') quoted += '\\';
    quoted += c;
  }
  return R"({"inputs": )" + inputs + R"(, "layers": [)" + layers + R"(], "optimizer": ")" + quoted +
         R"("})";
}

TEST(LayersDescription, OfLinearLayersIsTheOneOfReleasesThatHadNoOthers) {
  dense::Mlp mlp(6, {});
  mlp.add_linear(4, SHARDREC_ACTIVATION_RELU);
  mlp.add_linear(1, SHARDREC_ACTIVATION_NONE);
  const std::string text =
      described(R"({"outputs": 4, "activation": "relu"}, {"outputs": 1, "activation": "none"})");
  EXPECT_EQ(LayersState(mlp, nullptr).description(), text);
  const LayersDescription read = read_description(text, "path");
  ASSERT_EQ(read.layers.size(), 2U);
  EXPECT_EQ(read.layers[0].kind, SHARDREC_LAYER_LINEAR);
  EXPECT_EQ(read.layers[0].activation, SHARDREC_ACTIVATION_RELU);
  EXPECT_EQ(read.layers[1].outputs, 1);
  EXPECT_EQ(LayersState(mlp, nullptr).tensors(false).size(), 4U + 2) << "steps and learning_rate";
}

TEST(LayersDescription, OfAllKindsIsReadAsItWasWritten) {
  dense::Mlp mlp(6, {});
  mlp.add({.kind = SHARDREC_LAYER_CROSS});
  mlp.add({.kind = SHARDREC_LAYER_CROSS, .rank = 2});
  mlp.add({.kind = SHARDREC_LAYER_LAYER_NORM, .epsilon = 0.1});
  mlp.add({.kind = SHARDREC_LAYER_DROPOUT, .rate = 0.3});
  mlp.add_linear(3, SHARDREC_ACTIVATION_NONE);
  const std::string text = LayersState(mlp, nullptr).description();
  EXPECT_EQ(text, described(R"({"kind": "cross", "rank": 0}, {"kind": "cross", "rank": 2}, )"
                            R"({"kind": "layer_norm", "epsilon": 0.1}, )"
                            R"({"kind": "dropout", "rate": 0.3}, )"
                            R"({"outputs": 3, "activation": "none"})"));
  const auto again = make_layers(text, {.seed = 3}, "path");
  EXPECT_EQ(LayersState(*again, nullptr).description(), text);
  std::vector<std::string> names;
  for (const DenseTensor& tensor : LayersState(*again, nullptr).tensors(false)) {
    names.push_back(tensor.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"layer.0.weight", "layer.0.bias", "layer.1.down",
                                             "layer.1.weight", "layer.1.bias", "layer.2.weight",
                                             "layer.2.bias", "layer.4.weight", "layer.4.bias",
                                             "steps", "learning_rate", "dropout_forwards"}));
}

TEST(LayersDescription, WithAWrongMemberIsCorruptData) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"kind": "linear", "outputs": 4, "activation": "relu"})", "\"linear\" is unknown"},
      {R"({"kind": "attention"})",
       "\"attention\" is unknown; accepted: cross, layer_norm, dropout"},
      {R"({"kind": 1, "rank": 0})", "layers[0].kind"},
      {R"({"kind": "cross"})", "rank"},
      {R"({"kind": "cross", "rank": -1})", "layers[0].rank"},
      {R"({"kind": "cross", "rank": 65537})", "layers[0].rank"},
      {R"({"kind": "cross", "rank": 0.5})", "layers[0].rank"},
      {R"({"kind": "cross", "rank": 0, "outputs": 6})", "outputs"},
      {R"({"kind": "layer_norm"})", "epsilon"},
      {R"({"kind": "layer_norm", "epsilon": 0})", "epsilon of a layer norm layer is 0"},
      {R"({"kind": "layer_norm", "epsilon": -1})", "epsilon of a layer norm layer is -1"},
      {R"({"kind": "layer_norm", "epsilon": "small"})", "layers[0].epsilon"},
      {R"({"kind": "dropout", "rate": 1})", "rate of a dropout layer is 1"},
      {R"({"kind": "dropout", "rate": -0.5})", "rate of a dropout layer is -0.5"},
      {R"({"kind": "dropout", "rate": 0.5, "rank": 0})", "rank"},
      {R"({"rank": 0})", "rank"},
      {R"({"outputs": 0, "activation": "relu"})", "layers[0].outputs"},
      {R"({"outputs": 4, "activation": "tanh"})", "\"tanh\" is unknown"},
  };
  for (const auto& [layer, sentence] : wrong) {
    try {
      (void)read_description(described(layer), "the path");
      ADD_FAILURE() << layer;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_CORRUPT_DATA) << layer;
      EXPECT_NE(error.sentence().find(sentence), std::string::npos) << error.sentence();
      EXPECT_NE(error.sentence().find("the path"), std::string::npos) << error.sentence();
    }
  }
}

}  // namespace
}  // namespace shardrec::checkpoint
