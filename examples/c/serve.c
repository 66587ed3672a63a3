/* A small service: scores samples that come over TCP, on the loopback, from any number of connections.
 *
 *   serve_c DIR [PORT [THREADS]]     the newest checkpoint of DIR; port 0 (default): any that is free
 *
 * It prints "listening on port N" and answers each line of a connection with one:
 *
 *   0.5 -1;7 8,,3                    dense numbers; the ids of each feature, a comma between features
 *       score 0.731                  or "error" and a sentence
 *   refresh                          serves the newest checkpoint from now on
 *       step 200
 *   quit                             ends the service, as SIGTERM and SIGINT do
 *       bye
 *
 * All threads share one scorer; a refresh goes on beside the calls of the others. A thread serves one
 * connection at a time: THREADS (default 4) are served at once, more wait. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <shardrec/shardrec.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_LINE = 1 << 16, MOST_THREADS = 64 };

typedef struct {
  shardrec_scorer *scorer;
  int32_t features; /* of a line, as its dense columns; a refresh changes neither */
  int64_t dense_columns;
  int listener;
  pthread_mutex_t mutex; /* of what follows */
  int ending;
  int peers[MOST_THREADS]; /* the connection of each thread; -1: none */
} service;

typedef struct {
  service *all;
  int index;
  pthread_t thread;
  char line[MOST_LINE], answer[MOST_LINE];
  float dense[MOST_LINE]; /* more numbers than a line has room for */
  int64_t ids[MOST_LINE], lengths[MOST_LINE];
} worker;

/* Reads "1.5 -2;7 8,,3"; returns what is wrong with it, or NULL. */
static const char *parse(worker *m, int64_t *ids) {
  char *at = m->line, *end = NULL;
  for (int64_t c = 0; c < m->all->dense_columns; ++c, at = end) {
    m->dense[c] = strtof(at, &end);
    if (end == at) return "there are too few dense numbers";
  }
  for (int32_t f = 0; f < m->all->features; ++f) {
    at += strspn(at, " ");
    if (*at != (f == 0 ? ';' : ','))
      return "ids of each feature are needed, and marks between them";
    for (++at, m->lengths[f] = 0; m->ids[*ids] = strtoll(at, &end, 10), end != at; at = end) {
      ++m->lengths[f], ++*ids;
    }
  }
  return at[strspn(at, " ")] == '\0' ? NULL : "there is more than the line of a sample has";
}

static int predict(worker *m, int64_t id_count, float *score) {
  shardrec_tensor dense, ids, lengths, out;
  const shardrec_batch batch = {
      .struct_size = sizeof batch, .batch_size = 1, .values = &ids, .lengths = &lengths};
  return !shardrec_tensor_matrix(m->dense, SHARDREC_FLOAT32, 1, m->all->dense_columns, &dense) &&
         !shardrec_tensor_vector(m->ids, SHARDREC_INT64, id_count, &ids) &&
         !shardrec_tensor_vector(m->lengths, SHARDREC_INT64, m->all->features, &lengths) &&
         !shardrec_tensor_vector(score, SHARDREC_FLOAT32, 1, &out) &&
         !shardrec_scorer_predict(m->all->scorer, &batch, &dense, &out, NULL);
}

/* Writes the answer to a line. */
static void answer(worker *m) {
  float score = 0;
  int64_t id_count = 0, step = 0;
  const char *wrong = NULL;
  if (strcmp(m->line, "quit") == 0) {
    strcpy(m->answer, "bye\n");
  } else if (strcmp(m->line, "refresh") == 0) {
    if (shardrec_scorer_refresh(m->all->scorer, -1, NULL, &step)) wrong = shardrec_last_error();
    snprintf(m->answer, MOST_LINE, "step %lld\n", (long long)step);
  } else if ((wrong = parse(m, &id_count)) == NULL) {
    if (!predict(m, id_count, &score)) wrong = shardrec_last_error();
    snprintf(m->answer, MOST_LINE, "score %.9g\n", (double)score);
  }
  if (wrong) snprintf(m->answer, MOST_LINE, "error %s\n", wrong);
}

static int send_line(int peer, const char *line) {
  const size_t length = strlen(line);
  return send(peer, line, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* Answers the lines of one connection until it ends. */
static void converse(worker *m, int peer, FILE *lines) {
  while (fgets(m->line, MOST_LINE, lines)) {
    const size_t length = strcspn(m->line, "\r\n");
    if (m->line[length] == '\0') { /* it would begin in the middle of a line next */
      send_line(peer, "error the line does not end, or is too long\n");
      return;
    }
    m->line[length] = '\0';
    answer(m);
    if (!send_line(peer, m->answer)) return;
    if (strcmp(m->line, "quit") == 0) kill(getpid(), SIGTERM);
  }
}

/* The connection that this thread serves from now on, unless the service is ending. */
static int take(worker *m, int peer) {
  pthread_mutex_lock(&m->all->mutex);
  const int ending = m->all->ending;
  m->all->peers[m->index] = ending ? -1 : peer;
  pthread_mutex_unlock(&m->all->mutex);
  return !ending;
}

/* Each thread takes a connection, and the next one when that has ended. */
static void *serve(void *argument) {
  worker *m = argument;
  for (int peer; (peer = accept(m->all->listener, NULL, NULL)) >= 0 || errno == ECONNABORTED;) {
    FILE *lines = peer < 0 ? NULL : fdopen(peer, "r");
    if (lines && take(m, peer)) converse(m, peer, lines);
    take(m, -1);
    if (lines) fclose(lines);
  }
  return NULL;
}

/* Opens the scorer and asks it for what a line must have. */
static int open_model(service *all, const char *directory) {
  shardrec_served served = {.struct_size = sizeof served};
  shardrec_model_size size = {.struct_size = sizeof size};
  shardrec_model *model = NULL;
  const int good = !shardrec_scorer_open(directory, -1, NULL, NULL, &all->scorer) &&
                   !shardrec_scorer_info(all->scorer, &served) &&
                   !shardrec_scorer_model(all->scorer, &model) &&
                   !shardrec_model_info(model, &size);
  if (!good) fprintf(stderr, "%s\n", shardrec_last_error());
  if (good && served.scores != 1) fprintf(stderr, "%s: not one score a sample\n", directory);
  shardrec_model_destroy(&model);
  all->dense_columns = served.dense_columns;
  all->features = size.features;
  return good && served.scores == 1;
}

static int listen_on(service *all, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  socklen_t size = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  all->listener = socket(AF_INET, SOCK_STREAM, 0);
  if (all->listener < 0 || bind(all->listener, (struct sockaddr *)&address, size) ||
      listen(all->listener, 64) || getsockname(all->listener, (struct sockaddr *)&address, &size)) {
    perror("cannot listen");
    return 0;
  }
  printf("listening on port %d\n", ntohs(address.sin_port));
  return fflush(stdout) == 0;
}

/* What waits in accept and in reads returns at once. */
static void end(service *all) {
  pthread_mutex_lock(&all->mutex);
  all->ending = 1;
  shutdown(all->listener, SHUT_RDWR);
  for (int t = 0; t < MOST_THREADS; ++t) {
    if (all->peers[t] >= 0) shutdown(all->peers[t], SHUT_RDWR);
  }
  pthread_mutex_unlock(&all->mutex);
}

int main(int argc, char **argv) {
  service all = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  const int port = argc > 2 ? atoi(argv[2]) : 0, wanted = argc > 3 ? atoi(argv[3]) : 4;
  int started = 0, failed = 0, taken = 0;
  sigset_t ends;
  if (argc < 2 || argc > 4 || port < 0 || port > 65535 || wanted < 1 || wanted > MOST_THREADS) {
    fprintf(stderr, "usage: serve_c DIR [PORT [THREADS]], at most %d threads\n", MOST_THREADS);
    return 2;
  }
  sigemptyset(&ends), sigaddset(&ends, SIGINT), sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, NULL); /* of all threads: sigwait takes them */
  worker *workers = calloc((size_t)wanted, sizeof *workers);
  if (!workers) fprintf(stderr, "there is no memory for %d threads\n", wanted);
  if (!workers || !open_model(&all, argv[1]) || !listen_on(&all, port)) return 1;
  for (int t = 0; t < MOST_THREADS; ++t) all.peers[t] = -1;
  for (; started < wanted && !failed; started += !failed) {
    workers[started].all = &all, workers[started].index = started;
    failed = pthread_create(&workers[started].thread, NULL, serve, &workers[started]);
  }
  if (failed) {
    fprintf(stderr, "thread %d of %d does not start: %s\n", started + 1, wanted, strerror(failed));
  } else {
    sigwait(&ends, &taken);
  }
  end(&all);
  for (int t = 0; t < started; ++t) pthread_join(workers[t].thread, NULL);
  close(all.listener);
  shardrec_scorer_destroy(&all.scorer);
  free(workers);
  return failed != 0;
}
