package org.shardrec;

/** A group of ranks that are threads of this process. */
public final class Local extends Handle {
  public Local(int ranks, int ranksPerNode) {
    super(out -> Capi.local_create(ranks, ranksPerNode, out), Capi::local_destroy);
  }
}
