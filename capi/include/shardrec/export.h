/* Export marks and the version of the C API.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_EXPORT_H
#define SHARDREC_EXPORT_H

#include <stddef.h>
#include <stdint.h>

/* major * 1000 + minor of the API these headers describe. A binding refuses a library whose
 * shardrec_api_version() is lower than the SHARDREC_API_VERSION it was built with. */
#define SHARDREC_API_VERSION 2

#if defined(SWIG)
#define SHARDREC_API
#elif defined(__GNUC__)
#define SHARDREC_API __attribute__((visibility("default")))
#else
#define SHARDREC_API
#endif

#endif
