/* Annotations of parameters: what a parameter's type does not say. For example, input_gradient of
 *
 *   shardrec_mlp_backward(shardrec_mlp *mlp, const shardrec_tensor *output_gradient,
 *                         SHARDREC_NULLABLE SHARDREC_WRITTEN const shardrec_tensor *input_gradient);
 *
 * may be NULL, and the call writes to its memory. The annotations are empty macros: C and C++ compilers
 * do not see them. The generators of the bindings read them, so that all languages have the same
 * facts, and tests check that the library does what they say.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_ANNOTATIONS_H
#define SHARDREC_ANNOTATIONS_H

#include "shardrec/export.h"

/* The pointer may be NULL; the comment of the function says what that means, and when. A pointer without
 * this annotation must not be NULL: the call returns INVALID_HANDLE for a handle, INVALID_BATCH for a
 * part of a batch, and INVALID_ARGUMENT for everything else. */
#define SHARDREC_NULLABLE

/* The call may succeed and store NULL through this out-parameter. The parameter itself is not NULL. */
#define SHARDREC_OUT_NULLABLE

/* The options are of the kind SHARDREC_OPTIONS_<KIND>. NULL means the defaults. NONE: the function has no
 * options yet, and accepts only NULL. */
#define SHARDREC_OPTIONS(KIND)

/* An int32_t that is 0 (false) or 1 (true). */
#define SHARDREC_FLAG

/* A member of a struct that the library fills where it returns the struct, and does not read where it is
 * given one. */
#define SHARDREC_FILLED

/* The library writes to the memory of the tensor. The memory of other tensors is only read. */
#define SHARDREC_WRITTEN

/* The library uses the memory after the call has returned; the comment of the function says until when.
 * The option BORROW of lookups has the same effect on parameters without this annotation. */
#define SHARDREC_KEPT

#endif
