package org.shardrec;

import org.jspecify.annotations.Nullable;

/** Passes the messages of the library's log on to a logger of the host, until it is closed. */
final class LogForwarder implements AutoCloseable {
  private static final int POLL_MILLISECONDS = 200;

  private final System.Logger logger;
  private final Thread thread = new Thread(this::run, "shardrec-log");
  private volatile boolean closed;

  LogForwarder(System.Logger logger) {
    this.logger = logger;
    thread.setDaemon(true);
    thread.start();
  }

  private void run() {
    while (!closed) {
      ShardRec.LogMessage message = ShardRec.nextLogMessage(POLL_MILLISECONDS);
      if (message != null) logger.log(levelOf(message.level()), message.text());
    }
  }

  private static System.Logger.Level levelOf(@Nullable LogLevel level) {
    if (level == null) return System.Logger.Level.ERROR;
    return switch (level) {
      case DEBUG -> System.Logger.Level.DEBUG;
      case INFO -> System.Logger.Level.INFO;
      case WARNING -> System.Logger.Level.WARNING;
      case ERROR, OFF -> System.Logger.Level.ERROR;
    };
  }

  @Override
  public void close() {
    closed = true;
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
  }
}
