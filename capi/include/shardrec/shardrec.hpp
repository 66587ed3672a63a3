// libshardrec for C++17 and later, header-only: move-only handles, exceptions, views of contiguous
// memory. Everything is inline over the C API; the C headers say what each call does, which calls are
// collective, and their thread rules.
//
//   shardrec::Model model;
//   const int32_t user = model.add_table("user", 943, 64);
//   model.add_feature(user, "user_id", SHARDREC_POOLING_SUM);
//   const auto plan = shardrec::Plan::collective(comm, model);
//   shardrec::Collection tables(comm, model, plan);
//   shardrec::Lookup lookup(tables);
//   lookup.begin(batch_size, values, lengths);         // std::vector, std::span, ...
//   lookup.forward(0, {output.data(), batch_size, width});
//
// A call that fails throws shardrec::Error; find_... and try_... are for what may not be there.
// Destructors never throw and never block. Every handle can be made of one of the C API's and gives
// its own to it (get, release), and every function of the C API is called here.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_SHARDREC_HPP
#define SHARDREC_SHARDREC_HPP

#include "shardrec/cpp/checkpoint.hpp"
#include "shardrec/cpp/comm.hpp"
#include "shardrec/cpp/dense.hpp"
#include "shardrec/cpp/fsdp.hpp"
#include "shardrec/cpp/library.hpp"
#include "shardrec/cpp/memory.hpp"
#include "shardrec/cpp/options.hpp"
#include "shardrec/cpp/scorer.hpp"
#include "shardrec/cpp/tables.hpp"
#include "shardrec/cpp/tensor.hpp"
#include "shardrec/shardrec.h"

#endif
