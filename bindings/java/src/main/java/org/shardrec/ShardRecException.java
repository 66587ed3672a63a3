package org.shardrec;

import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** A status that is not OK: the sentence is the message; its parts are present where they are known. The classes
 * inside are its families. */
public class ShardRecException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The call was not possible: an argument, a handle that is closed or in use, the order of calls. */
  public static final class InvalidCall extends ShardRecException {
    private static final long serialVersionUID = 1;

    InvalidCall(String[] parts) {
      super(parts);
    }
  }

  /** Some rank's batch or gradient was refused; no rank applied it, and training may go on. */
  public static final class InvalidBatch extends ShardRecException {
    private static final long serialVersionUID = 1;

    InvalidBatch(String[] parts) {
      super(parts);
    }
  }

  /** A name, an index or a file does not exist. */
  public static final class NotFound extends ShardRecException {
    private static final long serialVersionUID = 1;

    NotFound(String[] parts) {
      super(parts);
    }
  }

  /** Meaningful, but not available in this build. */
  public static final class Unsupported extends ShardRecException {
    private static final long serialVersionUID = 1;

    Unsupported(String[] parts) {
      super(parts);
    }
  }

  /** There is not enough memory. */
  public static final class OutOfMemory extends ShardRecException {
    private static final long serialVersionUID = 1;

    OutOfMemory(String[] parts) {
      super(parts);
    }
  }

  /** The operating system refused a file operation, or a file does not hold what its format promises. */
  public static final class Io extends ShardRecException {
    private static final long serialVersionUID = 1;

    Io(String[] parts) {
      super(parts);
    }
  }

  /** A device failed, or its runtime refused a call. */
  public static final class Device extends ShardRecException {
    private static final long serialVersionUID = 1;

    Device(String[] parts) {
      super(parts);
    }
  }

  /** The ranks asked for different things: nothing was done on any of them, and all may go on. */
  public static final class Disagreement extends ShardRecException {
    private static final long serialVersionUID = 1;

    Disagreement(String[] parts) {
      super(parts);
    }
  }

  /** The group of ranks has failed: its communicator is dead; close what used it. */
  public static class GroupFailure extends ShardRecException {
    private static final long serialVersionUID = 1;

    GroupFailure(String[] parts) {
      super(parts);
    }
  }

  /** Another rank is gone. */
  public static final class PeerFailed extends GroupFailure {
    private static final long serialVersionUID = 1;

    PeerFailed(String[] parts) {
      super(parts);
    }
  }

  /** A deadline passed; the sentence names the rank and the operation. */
  public static final class Timeout extends GroupFailure {
    private static final long serialVersionUID = 1;

    Timeout(String[] parts) {
      super(parts);
    }
  }

  /** Ranks made different calls, or made them in another order. */
  public static final class Mismatch extends GroupFailure {
    private static final long serialVersionUID = 1;

    Mismatch(String[] parts) {
      super(parts);
    }
  }

  /** Some rank has aborted the group. */
  public static final class Aborted extends GroupFailure {
    private static final long serialVersionUID = 1;

    Aborted(String[] parts) {
      super(parts);
    }
  }

  /** A long call was cancelled. */
  public static final class Cancelled extends ShardRecException {
    private static final long serialVersionUID = 1;

    Cancelled(String[] parts) {
      super(parts);
    }
  }

  /** Of the C API. */
  private final int code;

  /** Status, its name, the sentence, five numbers and four texts; empty: the error has no such part. */
  private final String[] parts;

  ShardRecException(String[] parts) {
    super(parts[1] + ": " + parts[2]);
    this.code = Integer.parseInt(parts[0]);
    this.parts = parts;
  }

  /** block: made by shardrec_pack_error in the frame of the failing call. */
  static ShardRecException of(byte[] block) {
    return of(Text.decode(block).split("\0", -1));
  }

  /** Of a call that these classes refuse themselves. */
  static ShardRecException of(Status status, String sentence) {
    return of(new String[] {String.valueOf(status.value), "SHARDREC_" + status, sentence, "", "", "", "", "", "", "", "", ""});
  }

  private static ShardRecException of(String[] parts) {
    return switch (statusOf(Integer.parseInt(parts[0]))) {
      case INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE -> new InvalidCall(parts);
      case INVALID_BATCH -> new InvalidBatch(parts);
      case NOT_FOUND -> new NotFound(parts);
      case UNSUPPORTED -> new Unsupported(parts);
      case DISAGREEMENT -> new Disagreement(parts);
      case OUT_OF_MEMORY -> new OutOfMemory(parts);
      case IO_ERROR, CORRUPT_DATA -> new Io(parts);
      case DEVICE_ERROR -> new Device(parts);
      case PEER_FAILED -> new PeerFailed(parts);
      case TIMEOUT -> new Timeout(parts);
      case MISMATCH -> new Mismatch(parts);
      case ABORTED -> new Aborted(parts);
      case CANCELLED -> new Cancelled(parts);
      case OK, INTERNAL -> new ShardRecException(parts);
    };
  }

  /** A status of a later release is taken for the first of its family. */
  private static Status statusOf(int code) {
    Status status = Status.of(code);
    if (status != null) return status;
    return switch (code / 100) {
      case 0 -> Status.INVALID_ARGUMENT;
      case 1 -> Status.OUT_OF_MEMORY;
      case 2 -> Status.PEER_FAILED;
      case 3 -> Status.CANCELLED;
      default -> Status.INTERNAL;
    };
  }

  /**
   * Never null: a status of a later release is shown as the first of its family, and statusName has its name.
   *
   * @return never null: a status of a later release is shown as the first of its family, and statusName has its name
   */
  public Status status() {
    return statusOf(code);
  }

  /**
   * Such as "SHARDREC_TIMEOUT".
   *
   * @return such as "SHARDREC_TIMEOUT"
   */
  public String statusName() {
    return parts[1];
  }

  /**
   * What was wrong, where, what would be accepted.
   *
   * @return what was wrong, where, what would be accepted
   */
  public String sentence() {
    return parts[2];
  }

  /**
   * The rank at fault.
   *
   * @return the rank at fault
   */
  public OptionalLong rank() {
    return number(3);
  }

  /**
   * Index into the array at fault.
   *
   * @return index into the array at fault
   */
  public OptionalLong position() {
    return number(4);
  }

  /**
   * The value that was refused.
   *
   * @return the value that was refused
   */
  public OptionalLong value() {
    return number(5);
  }

  /**
   * What would have been accepted, exclusive.
   *
   * @return what would have been accepted, exclusive
   */
  public OptionalLong limit() {
    return number(6);
  }

  /**
   * The sequence number of the operation.
   *
   * @return the sequence number of the operation
   */
  public OptionalLong sequence() {
    return number(7);
  }

  /**
   * Name of the table; null where the error has none.
   *
   * @return name of the table; null where the error has none
   */
  public @Nullable String table() {
    return text(8);
  }

  /**
   * Name of the feature; null where the error has none.
   *
   * @return name of the feature; null where the error has none
   */
  public @Nullable String feature() {
    return text(9);
  }

  /**
   * The operation that failed, such as "forward"; null where the error has none.
   *
   * @return the operation that failed, such as "forward"; null where the error has none
   */
  public @Nullable String operation() {
    return text(10);
  }

  /**
   * The file or directory; null where the error has none.
   *
   * @return the file or directory; null where the error has none
   */
  public @Nullable String path() {
    return text(11);
  }

  private OptionalLong number(int i) {
    return parts[i].isEmpty() ? OptionalLong.empty() : OptionalLong.of(Long.parseLong(parts[i]));
  }

  private @Nullable String text(int i) {
    return parts[i].isEmpty() ? null : parts[i];
  }
}
