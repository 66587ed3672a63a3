/* A host's own layers, trained data-parallel: two ranks, threads of this process, each with its own
 * samples. A layer is ready for the other ranks as soon as its backward is done. */
#include <pthread.h>
#include <shardrec/shardrec.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 2, BATCH = 32, INPUTS = 2, HIDDEN = 16, STEPS = 300, MOST = INPUTS * HIDDEN };

typedef struct { /* y = x W^T + b, W [outputs, inputs] */
  int inputs, outputs;
  float weight[MOST], bias[HIDDEN];
  float *weight_gradient, *bias_gradient; /* the library's memory */
  int32_t first;                          /* index of the weight; the bias follows */
} layer;

typedef struct {
  shardrec_local *group;
  int32_t rank;
  float loss; /* of the last step, over this rank's samples */
  shardrec_status status;
} worker;

#define CHECK(call) \
  if ((status = (call)) != SHARDREC_OK) goto done

static float noise(unsigned *state) { /* in [-1, 1) */
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / (1 << 23) - 1;
}

static void forward(const layer *l, const float *x, float *y) {
  for (int b = 0; b < BATCH; ++b, x += l->inputs) {
    for (int o = 0; o < l->outputs; ++o, ++y) {
      *y = l->bias[o];
      for (int i = 0; i < l->inputs; ++i) *y += l->weight[o * l->inputs + i] * x[i];
    }
  }
}

/* Adds to the gradients; dx may be NULL. */
static void backward(layer *l, const float *x, const float *dy, float *dx) {
  if (dx != NULL) memset(dx, 0, (size_t)(BATCH * l->inputs) * sizeof(float));
  for (int b = 0; b < BATCH; ++b) {
    for (int o = 0; o < l->outputs; ++o) {
      const float d = dy[b * l->outputs + o];
      l->bias_gradient[o] += d;
      for (int i = 0; i < l->inputs; ++i) {
        l->weight_gradient[o * l->inputs + i] += d * x[b * l->inputs + i];
        if (dx != NULL) dx[b * l->inputs + i] += d * l->weight[o * l->inputs + i];
      }
    }
  }
}

/* gradient NULL: the library makes the memory, for buckets that need no copy. */
static shardrec_status add_layer(shardrec_ddp *ddp, const char *weight, const char *bias,
                                 layer *l) {
  shardrec_status status;
  shardrec_tensor view;
  CHECK(shardrec_tensor_matrix(l->weight, SHARDREC_FLOAT32, l->outputs, l->inputs, &view));
  CHECK(shardrec_ddp_add_parameter(ddp, weight, &view, NULL, &l->first));
  CHECK(shardrec_tensor_vector(l->bias, SHARDREC_FLOAT32, l->outputs, &view));
  CHECK(shardrec_ddp_add_parameter(ddp, bias, &view, NULL, NULL));
done:
  return status;
}

static shardrec_status find_gradients(const shardrec_ddp *ddp, layer *l) {
  shardrec_status status;
  shardrec_tensor view;
  CHECK(shardrec_ddp_gradient(ddp, l->first, &view));
  l->weight_gradient = view.data;
  CHECK(shardrec_ddp_gradient(ddp, l->first + 1, &view));
  l->bias_gradient = view.data;
done:
  return status;
}

static void *train(void *argument) {
  worker *me = argument;
  shardrec_status status = SHARDREC_OK;
  shardrec_comm *comm = NULL;
  shardrec_options *adam = NULL, *small = NULL;
  shardrec_ddp *ddp = NULL;
  layer bottom = {.inputs = INPUTS, .outputs = HIDDEN}, top = {.inputs = HIDDEN, .outputs = 1};
  float x[BATCH * INPUTS], h[BATCH * HIDDEN], y[BATCH], dy[BATCH], dh[BATCH * HIDDEN];
  unsigned state = 7 + (unsigned)me->rank; /* ranks begin apart; commit copies rank 0's values */
  for (int i = 0; i < INPUTS * HIDDEN; ++i) bottom.weight[i] = noise(&state);
  for (int i = 0; i < HIDDEN; ++i) top.weight[i] = noise(&state) / 4;
  CHECK(shardrec_comm_create_local(me->group, me->rank, NULL, &comm));
  CHECK(shardrec_options_create(SHARDREC_OPTIONS_DDP, &small)); /* so small a net has two buckets */
  CHECK(shardrec_options_set_i64(small, SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES, 64));
  CHECK(shardrec_ddp_create(comm, small, &ddp));
  CHECK(add_layer(ddp, "bottom.weight", "bottom.bias", &bottom));
  CHECK(add_layer(ddp, "top.weight", "top.bias", &top));
  CHECK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &adam));
  CHECK(shardrec_options_set_text(adam, SHARDREC_OPTION_OPTIMIZER, "adam"));
  CHECK(shardrec_options_set_f64(adam, SHARDREC_OPTION_LEARNING_RATE, 0.01));
  CHECK(shardrec_ddp_set_optimizer(ddp, adam));
  CHECK(shardrec_ddp_commit(ddp));
  CHECK(find_gradients(ddp, &bottom));
  CHECK(find_gradients(ddp, &top));
  for (int s = 0; s < STEPS; ++s) {
    for (int i = 0; i < BATCH * INPUTS; ++i) x[i] = noise(&state); /* this rank's samples */
    forward(&bottom, x, h);
    for (int i = 0; i < BATCH * HIDDEN; ++i) h[i] = h[i] > 0 ? h[i] : 0;
    forward(&top, h, y);
    me->loss = 0;
    for (int b = 0; b < BATCH; ++b) { /* to be learnt: |x0| + x1 / 2 */
      const float x0 = x[b * INPUTS];
      const float error = y[b] - (x0 > 0 ? x0 : -x0) - x[b * INPUTS + 1] / 2;
      me->loss += error * error / BATCH;
      dy[b] = 2 * error / BATCH;
    }
    CHECK(shardrec_ddp_zero_gradients(ddp));
    CHECK(shardrec_ddp_begin(ddp, 1));
    backward(&top, h, dy, dh);
    CHECK(shardrec_ddp_mark_ready(ddp, top.first, 2)); /* travels while the bottom computes */
    for (int i = 0; i < BATCH * HIDDEN; ++i) dh[i] = h[i] > 0 ? dh[i] : 0;
    backward(&bottom, x, dh, NULL);
    CHECK(shardrec_ddp_mark_ready(ddp, bottom.first, 2));
    CHECK(shardrec_ddp_end(ddp));
    CHECK(shardrec_ddp_wait(ddp)); /* gradients are the means over the ranks */
    CHECK(shardrec_ddp_clip_gradients(ddp, SHARDREC_CLIP_L2, 1, NULL));
    CHECK(shardrec_ddp_step(ddp));
    if (me->rank == 0 && (s + 1) % 100 == 0) printf("step %d, loss %g\n", s + 1, me->loss);
  }
  CHECK(shardrec_ddp_check_equal(ddp)); /* every rank has the same bits */
  CHECK(shardrec_comm_close(comm));
done:
  if (status != SHARDREC_OK) fprintf(stderr, "rank %d: %s\n", me->rank, shardrec_last_error());
  shardrec_ddp_destroy(&ddp), shardrec_comm_destroy(&comm);
  shardrec_options_destroy(&adam), shardrec_options_destroy(&small);
  me->status = status;
  return NULL;
}

int main(void) {
  worker ranks[RANKS] = {{NULL, 0, 0, SHARDREC_OK}, {NULL, 1, 0, SHARDREC_OK}};
  pthread_t other;
  shardrec_local *group = NULL;
  if (shardrec_local_create(RANKS, RANKS, NULL, &group) != SHARDREC_OK) return 1;
  ranks[0].group = ranks[1].group = group;
  if (pthread_create(&other, NULL, train, &ranks[1]) != 0) return 1;
  train(&ranks[0]);
  pthread_join(other, NULL);
  shardrec_local_destroy(&group);
  return ranks[0].status || ranks[1].status || ranks[0].loss > 0.01f || ranks[1].loss > 0.01f;
}
