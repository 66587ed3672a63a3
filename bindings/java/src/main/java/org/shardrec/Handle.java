package org.shardrec;

/** A native object. close() may be called more than once, in any order with other handles, from any thread;
 * a call on a closed handle is INVALID_HANDLE or CLOSED. */
abstract class Handle implements AutoCloseable {
  /** One of Capi's create calls: writes the ticket. */
  interface Create {
    void into(long[] out);
  }

  /** One of Capi's destroy calls. */
  interface Destroy {
    void of(long[] handle);
  }

  private final Destroy destroy;
  private volatile long ticket;

  Handle(Create create, Destroy destroy) {
    long[] out = new long[1];
    create.into(out);
    this.destroy = destroy;
    this.ticket = out[0];
  }

  /** 0 once it is closed. */
  final long ticket() {
    return ticket;
  }

  /** 0, C's NULL, for null. */
  static long ticketOf(Handle handle) {
    return handle == null ? 0 : handle.ticket;
  }

  @Override
  public final synchronized void close() {
    long[] handle = {ticket};
    ticket = 0;
    destroy.of(handle);
  }
}
