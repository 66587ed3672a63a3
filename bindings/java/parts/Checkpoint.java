import java.util.Arrays;

  /**
   * What a tensor of the open checkpoint is.
   *
   * @param dtype its elements
   * @param shape its sizes
   * @param bytes of its elements
   */
  public record TensorInfo(Dtype dtype, long[] shape, long bytes) {}

  /**
   * Describes a tensor that a rank had set in the open checkpoint.
   *
   * @param name of setTensor
   * @param rank that had set it
   * @return its dtype, shape and bytes
   */
  public TensorInfo tensorInfo(String name, int rank) {
    Tensor[] out = new Tensor[1];
    long[] bytes = new long[1];
    Capi.flat_checkpoint_tensor_info(this, name, rank, bytes, out);
    long[] layout = out[0].layout;
    return new TensorInfo(Dtype.of((int) layout[0]), Arrays.copyOfRange(layout, 2, 2 + (int) layout[1]), bytes[0]);
  }
