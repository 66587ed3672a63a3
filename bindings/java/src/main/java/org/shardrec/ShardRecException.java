package org.shardrec;

import java.util.OptionalLong;

/** A status that is not OK: the sentence is the message; its parts are present where they are known. */
public final class ShardRecException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final int code;
  private final String[] parts;

  /** block: made by shardrec_pack_error in the frame of the failing call. */
  ShardRecException(byte[] block) {
    this(Text.decode(block).split("\0", -1));
  }

  /** Of a call that these classes refuse themselves. */
  ShardRecException(Status status, String sentence) {
    this(new String[] {String.valueOf(status.value), "SHARDREC_" + status, sentence, "", "", "", "", "", "", "", "", ""});
  }

  private ShardRecException(String[] parts) {
    super(parts[1] + ": " + parts[2]);
    this.code = Integer.parseInt(parts[0]);
    this.parts = parts;
  }

  /** Null for a status of a later release; statusName has its name. */
  public Status status() {
    return Status.of(code);
  }

  /** Such as "SHARDREC_TIMEOUT". */
  public String statusName() {
    return parts[1];
  }

  /** What was wrong, where, what would be accepted. */
  public String sentence() {
    return parts[2];
  }

  /** The rank at fault. */
  public OptionalLong rank() {
    return number(3);
  }

  /** Index into the array at fault. */
  public OptionalLong position() {
    return number(4);
  }

  /** The value that was refused. */
  public OptionalLong value() {
    return number(5);
  }

  /** What would have been accepted, exclusive. */
  public OptionalLong limit() {
    return number(6);
  }

  /** The sequence number of the operation. */
  public OptionalLong sequence() {
    return number(7);
  }

  /** Name of the table; null where the error has none. */
  public String table() {
    return text(8);
  }

  /** Name of the feature; null where the error has none. */
  public String feature() {
    return text(9);
  }

  /** The operation that failed, such as "forward"; null where the error has none. */
  public String operation() {
    return text(10);
  }

  /** The file or directory; null where the error has none. */
  public String path() {
    return text(11);
  }

  private OptionalLong number(int i) {
    return parts[i].isEmpty() ? OptionalLong.empty() : OptionalLong.of(Long.parseLong(parts[i]));
  }

  private String text(int i) {
    return parts[i].isEmpty() ? null : parts[i];
  }
}
