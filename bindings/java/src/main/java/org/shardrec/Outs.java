package org.shardrec;

/** What native calls write a number into, one of each type for a thread: calls of every step must make nothing new. */
final class Outs {
  static final ThreadLocal<int[]> INT = ThreadLocal.withInitial(() -> new int[1]);
  static final ThreadLocal<long[]> LONG = ThreadLocal.withInitial(() -> new long[1]);
  static final ThreadLocal<double[]> DOUBLE = ThreadLocal.withInitial(() -> new double[1]);

  private Outs() {}
}
