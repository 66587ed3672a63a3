// Changes of a random scenario: kinds of input that the plain one has not.
#pragma once

#include <random>

#include "embedding/scenario.h"

namespace shardrec::test {

// An optimizer with a weight decay that it takes.
OptimizerSpec random_optimizer(std::mt19937_64& random, shardrec_optimizer kind);

// Gives all tables the optimizer, and some one of their own; some tables 16 bits.
void vary_optimizers(Scenario& scenario, std::mt19937_64& random, shardrec_optimizer kind);

// Some steps accumulate; one table is frozen for some steps.
void add_accumulation(Scenario& scenario, std::mt19937_64& random);

// Turns some features into sequences, at least one, and gives new gradients to all outputs.
void add_sequences(Scenario& scenario, std::mt19937_64& random);

// Gives every table a policy other than error, and puts ids outside the rows into its bags.
void add_stray_ids(Scenario& scenario, std::mt19937_64& random);

// Makes many bags of pooled features copies of earlier ones of their step.
void add_repeated_bags(Scenario& scenario, std::mt19937_64& random);

// Gradients that fp16 and bf16 both have: multiples of 1/16 in [-4, 4].
void round_gradients(Scenario& scenario, std::mt19937_64& random);

}  // namespace shardrec::test
