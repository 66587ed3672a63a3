package org.shardrec.spark;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.spark.sql.SparkSession;

/** A GPU for each task, by Spark's resources: DeviceTest FOLDER CLASS_PATH_OF_EXECUTORS PLUGIN_PATH CUBLASLT_LIBRARY. */
final class DeviceTest {
  private DeviceTest() {}

  public static void main(String[] arguments) {
    Checks.exit(() -> run(Path.of(arguments[0]), arguments[1], arguments[2], arguments[3]));
  }

  private static void run(Path folder, String classPath, String plugins, String products)
      throws Exception {
    try (SparkSession session = session(folder, "5", classPath, plugins, products)) {
      Checks.fails("device 5 does not exist", () -> Jobs.trainer(folder.resolve("none")).fit(Frames.clicks(session, 0, 512, 2)));
      TrainingResult onCpu = Jobs.trainer(folder.resolve("on-cpu")).collectionOptions(o -> o.device(DlrmRank.CPU))
          .fit(Frames.clicks(session, 0, 512, 2));
      Checks.check(onCpu.step() == 2, "collectionOptions has the last word");
    }
    try (SparkSession session = session(folder, "0", classPath, plugins, products)) {
      Jobs.train(session, folder.resolve("device"));
      Checks.fails("device 5 does not exist", () -> Jobs.trainer(folder.resolve("other")).layersOnGpu()
          .topOptions(o -> o.device(5)).fit(Frames.clicks(session, 0, 512, 2)));
      Jobs.train(session, Jobs.trainer(folder.resolve("layers")).layersOnGpu(), folder.resolve("layers"));
    }
  }

  /** Workers each find the GPU of this address. */
  private static SparkSession session(Path folder, String address, String classPath, String plugins, String products)
      throws Exception {
    Path script = folder.resolve("gpus-" + address);
    Files.writeString(script, "#!/bin/sh\necho '{\"name\": \"gpu\", \"addresses\": [\"" + address + "\"]}'\n");
    Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwx------"));
    return Jobs.builder("local-cluster[2,1,1024]", "KryoSerializer", classPath)
        .config("spark.worker.resource.gpu.amount", 1).config("spark.worker.resource.gpu.discoveryScript", script.toString())
        .config("spark.executor.resource.gpu.amount", 1).config("spark.task.resource.gpu.amount", 1)
        .config("spark.executorEnv.SHARDREC_PLUGIN_PATH", plugins)
        .config("spark.executorEnv.SHARDREC_CUBLASLT_LIBRARY", products).getOrCreate();
  }
}
