package org.shardrec.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.shardrec.CheckpointOptions;
import org.shardrec.CollectionOptions;
import org.shardrec.CommOptions;
import org.shardrec.DdpOptions;
import org.shardrec.MlpOptions;
import org.shardrec.OptimizerOptions;
import org.shardrec.PlanOptions;
import org.shardrec.Pooling;
import org.shardrec.RendezvousOptions;
import org.shardrec.TableOptions;

/** What {@link DlrmTrainer} has been told; travels to the tasks. Read-only there. */
final class Settings implements Serializable {
  private static final long serialVersionUID = 1;
  static final long NEWEST = -1;
  static final int NO_RESUME = -2;

  /** A table and the columns of ids that are looked up in it. */
  static final class Table implements Serializable {
    private static final long serialVersionUID = 1;
    final String name;
    final long rows;
    final List<String> columns;

    Table(String name, long rows, List<String> columns) {
      this.name = name;
      this.rows = rows;
      this.columns = columns;
    }
  }

  final String directory;
  String label = "label";
  final ArrayList<String> dense = new ArrayList<>();
  final ArrayList<Table> tables = new ArrayList<>();
  final HashMap<String, Pooling> pooling = new HashMap<>();
  int dim = 16;
  int[] bottom = {};
  int[] top = {};
  long seed;
  int epochs = 1;
  int batchSize = 1024;
  int ranks; // 0: as many as the frame has partitions
  long resumeStep = NO_RESUME;
  double stepSeconds = 600;
  double setupSeconds = 1800;
  double joinSeconds = 60;
  double slotSeconds = 60;
  boolean acrossMachines;
  boolean layersOnGpu;
  String secret = ""; // of the rendezvous, where it can be reached from other machines

  final HashMap<String, OptionSetter<TableOptions>> tableOptions = new HashMap<>();
  OptionSetter<OptimizerOptions> tableOptimizer = options -> {};
  OptionSetter<MlpOptions> layerOptions = options -> {};
  OptionSetter<MlpOptions> bottomOptions = options -> {};
  OptionSetter<MlpOptions> topOptions = options -> {};
  OptionSetter<PlanOptions> planOptions = options -> {};
  OptionSetter<CollectionOptions> collectionOptions = options -> {};
  OptionSetter<DdpOptions> ddpOptions = options -> {};
  OptionSetter<CommOptions> commOptions = options -> {};
  OptionSetter<RendezvousOptions> rendezvousOptions = options -> {};
  OptionSetter<CheckpointOptions> checkpointOptions = options -> {};

  Settings(String directory) {
    if (directory.matches("[A-Za-z][A-Za-z0-9+.-]*:/.*")) {
      throw new IllegalArgumentException(directory + " is a URI; checkpoints are in a folder that is mounted on every executor:"
          + " give its path");
    }
    this.directory = directory;
  }

  /** All columns of ids, in the order of the model's features. */
  List<String> features() {
    List<String> all = new ArrayList<>();
    for (Table table : tables) all.addAll(table.columns);
    return all;
  }

  /** Options with what a setter makes of them. */
  static <T> T with(T options, OptionSetter<? super T> setter) {
    setter.set(options);
    return options;
  }

  /** Refuses what no task could train, before a job begins. */
  void check() {
    if (dense.isEmpty()) throw new IllegalStateException("no dense column: call dense(...)");
    if (tables.isEmpty()) throw new IllegalStateException("no table: call table(...)");
    List<String> features = features();
    for (String feature : features) {
      if (features.indexOf(feature) != features.lastIndexOf(feature)) {
        throw new IllegalStateException("column " + feature + " is a feature of two tables; a feature has one");
      }
    }
    for (String column : pooling.keySet()) {
      if (!features.contains(column)) throw new IllegalStateException("pooling of " + column + ", which is no table's column");
    }
    for (Map.Entry<String, ?> entry : tableOptions.entrySet()) {
      if (tables.stream().noneMatch(table -> table.name.equals(entry.getKey()))) {
        throw new IllegalStateException("options of table " + entry.getKey() + ", which there is not: call table(...)");
      }
    }
  }
}
