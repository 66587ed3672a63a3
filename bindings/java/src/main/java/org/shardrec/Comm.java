package org.shardrec;

/** One rank's membership of a group of ranks. */
public final class Comm extends Handle {
  /** Joins a local group; waits for nobody. */
  public Comm(Local group, int rank) {
    super(out -> Capi.comm_create_local(group, rank, out), Capi::comm_destroy);
  }

  private Comm(long value) {
    super(value, Capi::comm_destroy);
  }

  public int rank() {
    int[] out = new int[1];
    Capi.comm_rank(this, out);
    return out[0];
  }

  public int size() {
    int[] out = new int[1];
    Capi.comm_size(this, out);
    return out[0];
  }

  public void set(CommProperty property, double value) {
    Capi.comm_set_f64(this, property.value, value);
  }

  public void barrier() {
    Capi.comm_barrier(this);
  }

  public void allReduce(Tensor tensor, Reduction reduction) {
    Capi.comm_all_reduce(this, Tensor.writable(tensor), reduction.value);
  }

  /** Copies the elements of rank root over those of all others. */
  public void broadcast(Tensor tensor, int root) {
    Capi.comm_broadcast(this, Tensor.writable(tensor), root);
  }

  /** out: the elements of all ranks, in rank order. */
  public void allGather(Tensor tensor, Tensor out) {
    Capi.comm_all_gather(this, tensor, Tensor.writable(out));
  }

  /** out: this rank's part of the reduction. */
  public void reduceScatter(Tensor tensor, Tensor out, Reduction reduction) {
    Capi.comm_reduce_scatter(this, tensor, Tensor.writable(out), reduction.value);
  }

  /** Sends rows to every rank and receives theirs, as many as the counts (longs, one per rank) say;
   * null: equal parts. */
  public void allToAll(Tensor tensor, Tensor sendCounts, Tensor out, Tensor receiveCounts) {
    Capi.comm_all_to_all(this, tensor, sendCounts, Tensor.writable(out), receiveCounts);
  }

  /** The communicator of the ranks that give the same color, numbered by key; null for a color below 0. */
  public Comm split(int color, int key) {
    long value = created(out -> Capi.comm_split(this, color, key, out));
    return value == 0 ? null : new Comm(value);
  }

  /** Ends the communicator on every rank. Any thread. */
  public void abort(String reason) {
    Capi.comm_abort(this, reason);
  }

  /** The orderly, collective end (shardrec_comm_close); close() afterwards. */
  public void shutdown() {
    Capi.comm_close(this);
  }
}
