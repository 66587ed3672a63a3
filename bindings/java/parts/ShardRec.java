  /** In place of a table's index: all tables. */
  public static final int ALL_TABLES = -1;

  /** What one rank does. */
  public interface Rank {
    /**
     * The rank's work.
     *
     * @param comm its membership
     * @throws Exception which ends the other ranks
     */
    void run(Comm comm) throws Exception;
  }

  /**
   * A message of the library's log.
   *
   * @param level its level; null for one of a later release
   * @param rank of which it tells; -1: none
   * @param text one sentence
   */
  public record LogMessage(@Nullable LogLevel level, int rank, String text) {}

  /**
   * Runs body on n ranks of one node, each a thread with a communicator of its own. The first failure aborts the other
   * ranks and is thrown; what else failed is suppressed by it. Interrupting the caller, or a rank's thread, aborts all
   * ranks. No rank is left running when this returns.
   *
   * @param n number of ranks
   * @param body what each does
   * @throws Exception of the first rank that failed
   */
  public static void run(int n, Rank body) throws Exception {
    new Ranks(body).run(n);
  }

  /**
   * The version of the C API that the library serves.
   *
   * @return major * 1000 + minor
   */
  public static int apiVersion() {
    return Capi.api_version();
  }

  /**
   * XXH3-64 of bytes with a seed: the same value in every language and on every machine.
   *
   * @param seed any number
   * @param bytes null is as good as none
   * @return a number of 64 bits, in two's complement
   */
  public static long hash64(long seed, byte @Nullable [] bytes) {
    return Capi.hash64(seed, bytes);
  }

  /**
   * {@link #bceWithLogits} without the loss, for which the host would wait where the stack is on a device: a label
   * outside 0 .. 1 is told by the next call that has it.
   *
   * @param stack where it is computed; null: on the CPU
   * @param logits [batch] or [batch, 1]
   * @param labels 0 .. 1
   * @param probabilities null: not wanted
   * @param gradient null: not wanted
   */
  public static void enqueueBceWithLogits(@Nullable Mlp stack, Tensor logits, Tensor labels,
      @Nullable Tensor probabilities, @Nullable Tensor gradient) {
    Capi.bce_with_logits(stack, logits, labels, probabilities, gradient, null);
  }

  /**
   * Takes the oldest message of the library's log.
   *
   * @param timeoutMilliseconds to wait for one; 0: does not wait
   * @return null when none came in time
   */
  public static @Nullable LogMessage nextLogMessage(int timeoutMilliseconds) {
    int[] level = new int[1], rank = new int[1];
    String[] text = new String[1];
    Capi.log_next(timeoutMilliseconds, level, rank, text);
    return text[0] == null ? null : new LogMessage(LogLevel.of(level[0]), rank[0], text[0]);
  }

  /** Ends the forwarding of the log. */
  public interface LogForwarding extends AutoCloseable {
    @Override
    void close();
  }

  /**
   * Passes the messages of the library's log on to a logger, on a thread of its own, until the result is closed.
   *
   * @param logger such as System.getLogger("org.shardrec")
   * @return what ends it
   */
  public static LogForwarding forwardLog(System.Logger logger) {
    LogForwarder forwarder = new LogForwarder(logger);
    return forwarder::close;
  }
