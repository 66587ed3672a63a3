/** Sharded embedding tables and dense training for recommendation models. */
module org.shardrec {
  requires static org.jspecify;

  exports org.shardrec;
}
