  /** Ends {@link Comm#abortOnInterrupt}. */
  public interface InterruptGuard extends AutoCloseable {
    @Override
    void close();
  }

  /**
   * From now on, until the result is closed, an interrupt of the calling thread aborts this communicator: whatever call its
   * ranks are in ends with ABORTED, in place of waiting for its deadline. For ranks that are processes, or threads of the
   * host; {@link ShardRec#run} does it by itself. The interrupt stays set.
   *
   * @return what ends it
   */
  public InterruptGuard abortOnInterrupt() {
    Thread thread = Thread.currentThread();
    return new InterruptWatch(() -> abort(Ranks.textOf(thread.getName() + " was interrupted")))::close;
  }
