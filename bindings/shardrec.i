// The one source of all bindings: Java and Go come from it directly, Rust from its parse tree (swig -xml).
//
// It parses every public C header but native.h (native_only.txt) and adds typemaps for kinds of
// arguments, never for single functions, so that a new function needs no line here. The conventions it
// rests on are the headers':
//   shardrec_status as result          an exception (Java), an error (Go)
//   shardrec_x *, shardrec_x **        a handle's ticket, as a number; T ** to read or null it in place
//   T *out, T *out_name                an out-parameter, written only when the status is OK
//   char **out_text                    text that the wrapper copies and frees
//   const shardrec_tensor *            a view that the wrapper builds in its own C frame
//   const shardrec_batch *, shardrec_box *out  other structs: their members (tools/flat_calls.py)
//   (const void *bytes, int64_t size)  bytes
//   (int32_t ndim, const int64_t *shape)  sizes
// The error is copied in the frame of the failing call: goroutines change threads between calls.
//
// No <stdint.i>: it makes the wrappers cast to `long long`, which is not glibc's int64_t. The files of
// typemaps carry a prefix because java.swg and go.swg would shadow SWIG's own.
%module capi

%{
#include "shardrec/shardrec.h"
%}

%define SHARDREC_HANDLES(APPLY)
APPLY(shardrec_options)
APPLY(shardrec_control)
APPLY(shardrec_local)
APPLY(shardrec_comm)
APPLY(shardrec_model)
APPLY(shardrec_topology)
APPLY(shardrec_plan)
APPLY(shardrec_collection)
APPLY(shardrec_lookup)
APPLY(shardrec_mesh)
APPLY(shardrec_rendezvous)
APPLY(shardrec_ddp)
APPLY(shardrec_mlp)
APPLY(shardrec_interaction)
APPLY(shardrec_metrics)
APPLY(shardrec_checkpoint)
APPLY(shardrec_scorer)
APPLY(shardrec_memory)
APPLY(shardrec_fsdp)
%enddef

#if defined(SWIGJAVA) || defined(SWIGGO)
// Fixed-width names keep their spelling in casts.
%apply int { int32_t };
%apply long long { int64_t };

// What the wrappers do themselves: build tensors, copy errors, free texts.
%rename("$ignore", %$isclass) "";
%include "flat_ignored.i"
%rename("$ignore", %$isenum) "";
%rename("$ignore", %$isenumitem) "";
%rename("$ignore", %$isconstant) "";
%rename("%(strip:[shardrec_])s", %$isfunction) "";
%rename("$ignore", regexmatch$name="^shardrec_(last_error|tensor_vector|tensor_matrix|text_free)") "";
#endif

#if defined(SWIGJAVA)
%include "shardrec_java.swg"
#elif defined(SWIGGO)
%include "shardrec_go.swg"
#endif

%include "shardrec/annotations.h"
%include "shardrec/export.h"
%include "shardrec/status.h"
%include "shardrec/library.h"
%include "shardrec/log.h"
%include "shardrec/control.h"
%include "shardrec/tensor.h"
%include "shardrec/memory.h"
%include "shardrec/options.h"
%include "shardrec/comm.h"
%include "shardrec/rendezvous.h"
%include "shardrec/mesh.h"
%include "shardrec/model.h"
%include "shardrec/plan.h"
%include "shardrec/collection.h"
%include "shardrec/batch.h"
%include "shardrec/lookup.h"
%include "shardrec/ddp.h"
%include "shardrec/fsdp.h"
%include "shardrec/layers.h"
%include "shardrec/checkpoint.h"
%include "shardrec/scorer.h"
%include "shardrec/metrics.h"
%include "shardrec/observe.h"
%include "shardrec/probe.h"

#if defined(SWIGJAVA) || defined(SWIGGO)
%insert("header") "flat_calls.h"
%include "flat_calls.h"
#endif
