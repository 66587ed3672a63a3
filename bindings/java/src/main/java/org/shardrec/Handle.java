package org.shardrec;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** A native object. close() may be called more than once, in any order with other handles, from any thread, also
 * during a call; a call on a closed handle throws INVALID_HANDLE or CLOSED. A handle that is dropped without
 * close() is closed when it is collected, and the first of its class is logged. */
public abstract class Handle implements AutoCloseable {
  /** One of Capi's create calls: writes the ticket. */
  interface Create {
    void into(long[] out);
  }

  /** One of Capi's destroy calls; holds no handle, or that would never be collected. */
  interface Destroy {
    void of(long[] handle);
  }

  private static final Cleaner CLEANER = Cleaner.create();

  private final Ticket ticket;
  private final Cleaner.Cleanable cleanable;
  private final @Nullable Handle[] parents;
  private final List<Object> kept = new ArrayList<>(0);
  private volatile int viewVersion;

  /** parents: what must not be collected before this is. */
  Handle(Create create, Destroy destroy, @Nullable Handle... parents) {
    this(created(create), destroy, parents);
  }

  /** Takes over a ticket that is not 0. */
  Handle(long value, Destroy destroy, @Nullable Handle... parents) {
    this.parents = parents;
    ticket = new Ticket(value, destroy, getClass());
    cleanable = CLEANER.register(this, ticket);
  }

  /** What the library uses until this is closed. */
  final void keep(@Nullable Object used) {
    synchronized (kept) {
      if (used != null) kept.add(used);
    }
  }

  /** Views of this object's memory are refused from now on. */
  final void invalidateViews() {
    ++viewVersion;
  }

  final int viewVersion() {
    return viewVersion;
  }

  static long created(Create create) {
    long[] out = new long[1];
    create.into(out);
    return out[0];
  }

  /** For the native wrappers: 0, C's NULL, for null. */
  static long ticketOf(@Nullable Handle handle) {
    if (handle == null) return 0;
    long value = handle.ticket.value;
    if (value == 0) throw handle.closed();
    return value;
  }

  /** Ends it; nothing happens the second time. */
  @Override
  public final void close() {
    ticket.closedByHost = true;
    cleanable.clean();
    Reference.reachabilityFence(parents);
    synchronized (kept) {
      kept.clear();
    }
  }

  private ShardRecException closed() {
    return ShardRecException.of(Status.INVALID_HANDLE, "this " + getClass().getSimpleName() + " is closed");
  }

  /** What outlives the handle. */
  private static final class Ticket implements Runnable {
    private static final Set<Class<?>> LOGGED = ConcurrentHashMap.newKeySet();

    volatile long value;
    volatile boolean closedByHost;
    private final Destroy destroy;
    private final Class<?> owner;

    Ticket(long value, Destroy destroy, Class<?> owner) {
      this.value = value;
      this.destroy = destroy;
      this.owner = owner;
    }

    @Override
    public void run() {
      long[] handle = {value};
      value = 0;
      destroy.of(handle);
      if (closedByHost || !LOGGED.add(owner)) return;
      System.getLogger("org.shardrec").log(System.Logger.Level.WARNING, "a " + owner.getSimpleName()
          + " was not closed; the garbage collector did it. Others of this class are not reported.");
    }
  }
}
