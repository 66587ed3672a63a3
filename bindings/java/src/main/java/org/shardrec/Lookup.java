package org.shardrec;

/** A slot for one batch: begin, forward, then setGradient and backward, or skip, or nothing (evaluation). */
public final class Lookup extends Handle {
  /** options may be null. */
  public Lookup(EmbeddingCollection collection, LookupOptions options) {
    super(out -> Options.use(options, made -> Capi.lookup_create(collection, made, out)), Capi::lookup_destroy, collection);
  }

  /** Starts the exchange of a batch's ids. values null: this rank has no more data; weights may be null. */
  public void begin(long batchSize, Tensor values, Tensor lengths, Tensor weights) {
    Capi.lookup_begin(this, batchSize, values, lengths, weights);
  }

  public void beginOffsets(long batchSize, Tensor values, Tensor offsets, Tensor weights) {
    Capi.lookup_begin_offsets(this, batchSize, values, offsets, weights);
  }

  public void forward(int output, Tensor out) {
    Capi.lookup_forward(this, output, Tensor.writable(out));
  }

  /** True when no rank has more data; valid after forward. */
  public boolean allDone() {
    int[] out = new int[1];
    Capi.lookup_all_done(this, out);
    return out[0] != 0;
  }

  public void setGradient(int output, Tensor gradient) {
    Capi.lookup_set_gradient(this, output, gradient);
  }

  /** Sends the gradients before {@link #backward} is called, which must follow: they travel meanwhile. */
  public void sendGradients() {
    Capi.lookup_send_gradients(this, 0);
  }

  public void backward() {
    Capi.lookup_backward(this);
  }

  public void skip() {
    Capi.lookup_skip(this);
  }
}
