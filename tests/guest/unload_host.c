/* unload_host LIBRARY [PLUGIN...]: a host that opens the library, trains nothing but has threads and
 * handles of it, closes it, and goes on; then the same with plug-ins that it only opens and closes.
 *
 * A closed library must still be there: its threads run in it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shardrec/shardrec.h"

static int failures = 0;

static void expect(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "unload_host: %s\n", what);
  ++failures;
}

/* A function of the library; data pointers and function pointers are alike where there is dlsym. */
static void find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "unload_host: no function %s\n", name);
    exit(1);
  }
  memcpy(function, &symbol, sizeof symbol);
}

static int is_open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (library != NULL) dlclose(library);
  return library != NULL;
}

static void close_with_live_handles(const char *path) {
  shardrec_status (*make_group)(int32_t, int32_t, const shardrec_options *, shardrec_local **);
  shardrec_status (*make_comm)(shardrec_local *, int32_t, const shardrec_options *,
                               shardrec_comm **);
  shardrec_status (*make_options)(shardrec_options_kind, shardrec_options **);
  shardrec_status (*set)(shardrec_options *, shardrec_option, int64_t);
  shardrec_status (*make_layer)(int64_t, int64_t, const shardrec_options *,
                                shardrec_interaction **);
  shardrec_status (*count_columns)(const shardrec_interaction *, int64_t *);
  shardrec_status (*barrier)(shardrec_comm *);
  shardrec_local *group = NULL;
  shardrec_comm *comm = NULL;
  shardrec_options *options = NULL;
  shardrec_interaction *layer = NULL;
  int64_t columns = 0;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "unload_host: %s\n", dlerror());
    exit(1);
  }
  find(library, "shardrec_local_create", &make_group);
  find(library, "shardrec_comm_create_local", &make_comm);
  find(library, "shardrec_options_create", &make_options);
  find(library, "shardrec_options_set_i64", &set);
  find(library, "shardrec_interaction_create", &make_layer);
  find(library, "shardrec_interaction_outputs", &count_columns);
  find(library, "shardrec_comm_barrier", &barrier);
  expect(make_group(1, 1, NULL, &group) == SHARDREC_OK, "no group");
  expect(make_comm(group, 0, NULL, &comm) == SHARDREC_OK, "no communicator");
  expect(make_options(SHARDREC_OPTIONS_MLP, &options) == SHARDREC_OK, "no options");
  expect(set(options, SHARDREC_OPTION_THREADS, 3) == SHARDREC_OK, "no threads");
  expect(make_layer(4, 8, options, &layer) == SHARDREC_OK, "no layer");
  expect(dlclose(library) == 0, "it cannot be closed");
  expect(is_open(path), "the library is gone, with live handles and threads");
  if (failures != 0) return;
  expect(barrier(comm) == SHARDREC_OK, "its functions are gone");
  expect(count_columns(layer, &columns) == SHARDREC_OK && columns == 18, "its objects are gone");
}

int main(int count, char **words) {
  int i;
  if (count < 2) return 2;
  close_with_live_handles(words[1]);
  for (i = 2; i < count; ++i) {
    void *plugin = dlopen(words[i], RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
      fprintf(stderr, "unload_host: %s\n", dlerror());
      return 1;
    }
    expect(dlclose(plugin) == 0 && is_open(words[i]), words[i]);
  }
  /* The threads of the library live while the process ends. */
  return failures == 0 ? 0 : 1;
}
