/* Inserted into the Java and the Go wrapper: the calling thread's error in one block of memory, so
 * that it leaves the frame of the failing call whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields ended by NUL: status, its name, the sentence; the numbers RANK, POSITION, VALUE, LIMIT,
 * SEQUENCE; the texts TABLE, FEATURE, OPERATION, PATH. A part that the error lacks is empty. The
 * result is malloc'ed; NULL when there is no memory. */
static char *shardrec_pack_error(shardrec_status status, size_t *size) {
  const char *name = shardrec_status_name(status);
  const char *sentence = shardrec_last_error();
  char *texts[4] = {NULL, NULL, NULL, NULL};
  char numbers[6][24];
  size_t bytes = strlen(name) + strlen(sentence) + 2 + sizeof numbers + 4;
  char *block;
  int i;
  snprintf(numbers[0], sizeof numbers[0], "%d", (int)status);
  for (i = 0; i < 5; ++i) {
    int64_t value = 0;
    numbers[1 + i][0] = '\0';
    if (shardrec_last_error_i64((shardrec_error_part)(SHARDREC_ERROR_RANK + i), &value) ==
        SHARDREC_OK)
      snprintf(numbers[1 + i], sizeof numbers[0], "%lld", (long long)value);
  }
  for (i = 0; i < 4; ++i) {
    if (shardrec_last_error_text((shardrec_error_part)(SHARDREC_ERROR_TABLE + i), &texts[i]) !=
        SHARDREC_OK)
      texts[i] = NULL;
    if (texts[i] != NULL) bytes += strlen(texts[i]);
  }
  block = malloc(bytes);
  if (block != NULL) {
    const char *fields[12];
    char *end = block;
    fields[0] = numbers[0];
    fields[1] = name;
    fields[2] = sentence;
    for (i = 0; i < 5; ++i) fields[3 + i] = numbers[1 + i];
    for (i = 0; i < 4; ++i) fields[8 + i] = texts[i] != NULL ? texts[i] : "";
    for (i = 0; i < 12; ++i) {
      size_t length = strlen(fields[i]) + 1;
      memcpy(end, fields[i], length);
      end += length;
    }
    *size = (size_t)(end - block);
  }
  for (i = 0; i < 4; ++i) shardrec_text_free(texts[i]);
  return block;
}
