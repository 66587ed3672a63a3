/* Dense weights in the memory of a device, and what came there from other processes. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

shardrec_status make_dense_memory(int device, int64_t count, dense_memory *out) {
  const int64_t bytes = count * (int64_t)sizeof(float);
  shardrec_status status =
      shardrec_memory_create(SHARDREC_DEVICE_CUDA, device, 2 * bytes, NULL, &out->memory);
  if (status == SHARDREC_OK) {
    status = shardrec_memory_tensor(out->memory, 0, SHARDREC_FLOAT32, 1, &count, &out->weights);
  }
  if (status == SHARDREC_OK) {
    status =
        shardrec_memory_tensor(out->memory, bytes, SHARDREC_FLOAT32, 1, &count, &out->gradients);
  }
  return status;
}

int64_t bytes_from_peers(void) {
  static const char kName[] = "\nshardrec_device_peer_bytes_total ";
  char *text = NULL;
  int64_t bytes = -1;
  if (shardrec_counters_text(&text) == SHARDREC_OK) {
    const char *const line = strstr(text, kName);
    if (line != NULL) bytes = strtoll(line + sizeof kName - 1, NULL, 10);
  }
  shardrec_text_free(text);
  return bytes;
}
