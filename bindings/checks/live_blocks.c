/* A library to preload, which counts the blocks of memory that the process has from malloc and its like and has not given
 * back, in the first 8 bytes of the file that SHARDREC_LIVE_BLOCKS names. A count of blocks is the process's own: unlike
 * resident memory, no other program moves it. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);

static _Atomic int64_t before_the_file; /* what is allocated before the constructor runs */
static _Atomic int64_t *_Atomic live = &before_the_file;

__attribute__((constructor)) static void open_file(void) {
  const char *path = getenv("SHARDREC_LIVE_BLOCKS");
  int file = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0 || ftruncate(file, sizeof(int64_t)) != 0) return;
  void *memory = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return;
  *(_Atomic int64_t *)memory = before_the_file;
  live = memory;
}

static void *counted(void *block) {
  if (block != NULL) ++*live;
  return block;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out == NULL ? ENOMEM : 0;
}
void *realloc(void *pointer, size_t size) {
  void *block = __libc_realloc(pointer, size);
  if (pointer == NULL) return counted(block);
  if (block == NULL && size == 0) --*live; /* it was freed */
  return block;
}
void free(void *pointer) {
  if (pointer != NULL) --*live;
  __libc_free(pointer);
}
