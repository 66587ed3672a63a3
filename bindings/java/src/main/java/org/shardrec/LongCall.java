package org.shardrec;

import org.jspecify.annotations.Nullable;

/** A call that takes a control: load, save, commit, verify, probe. An interrupt of its thread cancels it, and so does the
 * end of the other ranks of {@link ShardRec#run}. */
final class LongCall {
  /** The call of the raw layer. */
  interface Call {
    void with(Control control);
  }

  private LongCall() {}

  /** control: the caller's; null: one for this call. */
  static void run(@Nullable Control control, Call call) {
    if (control != null) {
      watched(control, call);
      return;
    }
    try (Control own = new Control()) {
      watched(own, call);
    }
  }

  private static void watched(Control control, Call call) {
    try (InterruptWatch watch = new InterruptWatch(control::cancel)) {
      if (Ranks.haveEnded(Thread.currentThread())) watch.fire();
      call.with(control);
    }
  }
}
