package org.shardrec;

/** One rank's membership of a group of ranks. */
public final class Comm extends Handle {
  /** Joins a local group; waits for nobody. */
  public Comm(Local group, int rank) {
    super(out -> Capi.comm_create_local(group.ticket(), rank, out), Capi::comm_destroy);
  }

  public int rank() {
    int[] out = new int[1];
    Capi.comm_rank(ticket(), out);
    return out[0];
  }

  public int size() {
    int[] out = new int[1];
    Capi.comm_size(ticket(), out);
    return out[0];
  }

  public void set(CommProperty property, double value) {
    Capi.comm_set_f64(ticket(), property.value, value);
  }

  public void barrier() {
    Capi.comm_barrier(ticket());
  }

  public void allReduce(Tensor tensor, Reduction reduction) {
    Capi.comm_all_reduce(ticket(), tensor, reduction.value);
  }

  /** Ends the communicator on every rank. Any thread. */
  public void abort(String reason) {
    Capi.comm_abort(ticket(), reason);
  }

  /** The orderly, collective end (shardrec_comm_close); close() afterwards. */
  public void shutdown() {
    Capi.comm_close(ticket());
  }
}
