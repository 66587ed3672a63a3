// Matrix products, computed by a plug-in that is loaded when it is first asked for: hosts that
// bring their own framework never load it.
//
// Where the plug-in is looked for: core/plugin.h. Once loaded it stays. All functions: any thread.
#pragma once

#include <string>

#include "dense/gemm_plugin.h"

namespace shardrec::dense {

using Gemm = shardrec_gemm_table;

// Loads the plug-in unless it is loaded. Throws UNSUPPORTED: the plug-in is missing (names the
// files looked for and what to install) or speaks another ABI (names both numbers).
const Gemm& gemm();

// Whether gemm() would succeed.
bool gemm_available() noexcept;

// Room for the products of one user, made before the first of them: in the middle of one, memory that has run
// out could not be told. Each takes 128 MiB of addresses, shared by the users of the process; there are no more
// than processors.
class GemmRoom {
 public:
  // at_once: products at a time; those that find no room wait. Throws as gemm(), and OUT_OF_MEMORY where there
  // is room for none.
  explicit GemmRoom(int at_once);
  ~GemmRoom();
  GemmRoom(const GemmRoom&) = delete;
  GemmRoom& operator=(const GemmRoom&) = delete;

  const Gemm& gemm() const noexcept { return gemm_; }

 private:
  const Gemm& gemm_;
  int at_once_;
};

}  // namespace shardrec::dense
