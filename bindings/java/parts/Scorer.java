  /**
   * Looks up a batch and writes one of its outputs. Any thread.
   *
   * @param output 0, the pooled features, or 1 + k, the k-th sequence feature
   * @param batch without batch sizes of features
   * @param out [batch size, width] or, of a sequence, [ids of the feature, dim]; FLOAT32, FLOAT16 or BFLOAT16
   * @return the step of the checkpoint that has answered
   */
  public long lookup(int output, Batch batch, Tensor out) {
    long[] step = Outs.LONG.get();
    Capi.flat_scorer_lookup(this, output, batch.size, batch.values, batch.lengths, batch.offsets, batch.weights,
        batch.batchSizes, batch.inverse, Tensor.writable(out), step);
    return step[0];
  }

  /**
   * Scores a batch: probabilities, or logits with the option LOGITS. Any thread.
   *
   * @param batch as lookup
   * @param dense [batch size, dense columns], FLOAT32
   * @param out [batch size, scores], FLOAT32; of one score also [batch size]
   * @return the step of the checkpoint that has answered
   */
  public long predict(Batch batch, Tensor dense, Tensor out) {
    long[] step = Outs.LONG.get();
    Capi.flat_scorer_predict(this, batch.size, batch.values, batch.lengths, batch.offsets, batch.weights, batch.batchSizes,
        batch.inverse, dense, Tensor.writable(out), step);
    return step[0];
  }
