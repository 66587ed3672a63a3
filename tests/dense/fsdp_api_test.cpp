// fsdp.h through the C API: what becomes of a stack whose layers are units of a set.
#include <gtest/gtest.h>

#include <vector>

#include "dense/ddp_api.h"
#include "shardrec/fsdp.h"
#include "support/layers.h"

namespace shardrec::test {
namespace {

struct Stack {
  explicit Stack(shardrec_comm* comm) {
    EXPECT_OK(shardrec_mlp_create(2, nullptr, mlp.out()));
    EXPECT_OK(add_linear(mlp, 1, SHARDREC_ACTIVATION_NONE));
    EXPECT_OK(shardrec_fsdp_create(comm, nullptr, nullptr, set.out()));
    EXPECT_OK(shardrec_fsdp_add_mlp(set, "net", mlp, 1, nullptr));
    EXPECT_OK(shardrec_fsdp_set_optimizer(set, nullptr));
  }
  shardrec_status forward() {
    std::vector<float> in = {1, 2}, out(1);
    shardrec_tensor x{}, y{};
    EXPECT_OK(shardrec_tensor_matrix(in.data(), SHARDREC_FLOAT32, 1, 2, &x));
    EXPECT_OK(shardrec_tensor_matrix(out.data(), SHARDREC_FLOAT32, 1, 1, &y));
    return shardrec_mlp_forward(mlp, &x, &y);
  }

  Mlp mlp;
  Fsdp set;
};

TEST(FsdpApi, ASetHasTheParametersOfItsStackAndTheGradientsAreTheBackwards) {
  run_ranks(1, [](shardrec_comm* comm, int) {
    Stack stack(comm);
    shardrec_tensor before{}, after{};
    ASSERT_OK(shardrec_mlp_parameter(stack.mlp, 0, &before, nullptr));
    ASSERT_OK(shardrec_fsdp_commit(stack.set));
    EXPECT_EQ(static_cast<float*>(before.data)[0], 0) << "a view reads zeros";
    EXPECT_EQ(shardrec_mlp_parameter(stack.mlp, 0, &after, nullptr), SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_mlp_state(stack.mlp, 0, 0, &after), SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_mlp_set_f64(stack.mlp, SHARDREC_MLP_LEARNING_RATE, 1),
              SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_mlp_step(stack.mlp), SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_mlp_zero_gradients(stack.mlp), SHARDREC_INVALID_STATE);
    EXPECT_OK(shardrec_mlp_set_f64(stack.mlp, SHARDREC_MLP_TRAINING, 0));
    EXPECT_EQ(stack.forward(), SHARDREC_INVALID_STATE) << "no step";
    ASSERT_OK(shardrec_fsdp_begin(stack.set, 1));
    ASSERT_OK(stack.forward());
    ASSERT_OK(shardrec_fsdp_unshard(stack.set, 0));
    EXPECT_EQ(shardrec_fsdp_gradient(stack.set, 0, &after), SHARDREC_INVALID_STATE);
    EXPECT_TRUE(contains(shardrec_last_error(), "\"net.layer.0.weight\"")) << shardrec_last_error();
  });
}

TEST(FsdpApi, WithoutItsSetAStackIsClosedAndBeforeCommitItIsItsOwn) {
  run_ranks(1, [](shardrec_comm* comm, int) {
    Stack own(comm);
    EXPECT_OK(own.forward()) << "before commit";
    shardrec_fsdp_destroy(own.set.out());
    EXPECT_OK(own.forward());

    Stack sharded(comm);
    ASSERT_OK(shardrec_fsdp_commit(sharded.set));
    shardrec_fsdp_destroy(sharded.set.out());
    EXPECT_EQ(sharded.forward(), SHARDREC_CLOSED) << shardrec_last_error();
    Fsdp other;
    ASSERT_OK(shardrec_fsdp_create(comm, nullptr, nullptr, other.out()));
    EXPECT_EQ(shardrec_fsdp_add_mlp(other, "net", sharded.mlp, 1, nullptr), SHARDREC_INVALID_STATE);
    EXPECT_OK(shardrec_fsdp_add_mlp(other, "net", own.mlp, 1, nullptr));
    EXPECT_EQ(shardrec_fsdp_add_mlp(other, "more", own.mlp, 0, nullptr), SHARDREC_INVALID_ARGUMENT);
  });
}

}  // namespace
}  // namespace shardrec::test
