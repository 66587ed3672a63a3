// What a library of the tests' own has found that its caller must not do: counted, and said on stderr.
//
// Thread rule: any thread.
#pragma once

#include <cstdarg>
#include <cstdint>

namespace simt {

// library: whose violation it is, on stderr. fatal: the process ends with it.
void add_violation(const char* library, bool fatal, const char* format, std::va_list values);
// Violations so far, and the last of them as a sentence, valid until the thread's next call; "" if there was none.
int64_t violations();
const char* last_violation();
void forget_violations();

}  // namespace simt
