/* Stands for the library that Java's build makes, where that was not run: it needs the library as that one does. */
#include <shardrec/shardrec.h>

int32_t JNI_OnLoad(void *vm, void *reserved);
int32_t JNI_OnLoad(void *vm, void *reserved) {
  (void)vm;
  (void)reserved;
  return shardrec_api_version();
}
