  private @Nullable Tensor dense, embeddings; // are read until backward

  /**
   * The dense vector and its dot products with the embeddings, and of these with each other.
   *
   * @param dense [batch, dim], FLOAT32; read again by backward, and held until the next forward
   * @param embeddings [batch, features * dim], FLOAT32; likewise
   * @param output [batch, outputs], FLOAT32
   */
  public void forward(Tensor dense, Tensor embeddings, Tensor output) {
    Capi.interaction_forward(this, Tensor.own(dense), Tensor.own(embeddings), Tensor.writable(output));
    this.dense = dense;
    this.embeddings = embeddings;
  }

  /**
   * Gradients of both inputs of the last forward, overwritten.
   *
   * @param outputGradient as forward's output
   * @param denseGradient as forward's dense
   * @param embeddingGradient as forward's embeddings
   */
  public void backward(Tensor outputGradient, Tensor denseGradient, Tensor embeddingGradient) {
    Capi.interaction_backward(
        this, outputGradient, Tensor.writable(denseGradient), Tensor.writable(embeddingGradient));
    java.lang.ref.Reference.reachabilityFence(dense);
    java.lang.ref.Reference.reachabilityFence(embeddings);
  }
