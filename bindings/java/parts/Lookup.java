  /**
   * Starts the exchange of a batch's ids, which are read before it returns. Collective, waits for nobody; every defect of the
   * batch is told by forward. INVALID_STATE when this has begun and not forwarded.
   *
   * @param batch of this rank
   */
  public void begin(Batch batch) {
    Capi.flat_lookup_begin(this, batch.size, batch.values, batch.lengths, batch.offsets, batch.weights, batch.batchSizes,
        batch.inverse);
  }
