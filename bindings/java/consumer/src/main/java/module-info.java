/** Trains with the published artefacts. */
module consumer {
  requires org.shardrec;
}
