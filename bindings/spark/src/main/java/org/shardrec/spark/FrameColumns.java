package org.shardrec.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.ShortType;

/** Which columns of a frame are trained on, and as what: floats, the label, then for each feature a long or an array of them. */
final class FrameColumns {
  private FrameColumns() {}

  /** The columns in the order that {@link RowBatches} reads them. */
  static Dataset<Row> select(Dataset<Row> frame, Settings settings) {
    List<Column> columns = new ArrayList<>();
    for (String name : settings.dense) columns.add(number(frame, name));
    columns.add(number(frame, settings.label));
    for (String name : settings.features()) columns.add(ids(frame, name));
    return frame.select(columns.toArray(new Column[0]));
  }

  private static DataType type(Dataset<Row> frame, String name) {
    String[] names = frame.schema().fieldNames();
    if (!Arrays.asList(names).contains(name)) {
      throw new IllegalArgumentException("the frame has no column " + name + "; it has " + String.join(", ", names));
    }
    return frame.schema().apply(name).dataType();
  }

  /** Backquotes: a name may hold a dot. */
  private static Column column(Dataset<Row> frame, String name) {
    return frame.col("`" + name.replace("`", "``") + "`");
  }

  private static Column number(Dataset<Row> frame, String name) {
    DataType type = type(frame, name);
    if (!(type instanceof NumericType) && !(type instanceof BooleanType)) {
      throw new IllegalArgumentException("column " + name + " is of type " + type.simpleString()
          + "; dense columns and the label are numbers");
    }
    return column(frame, name).cast(DataTypes.FloatType).as(name);
  }

  private static Column ids(Dataset<Row> frame, String name) {
    DataType type = type(frame, name);
    if (isId(type)) return column(frame, name).cast(DataTypes.LongType).as(name);
    if (type instanceof ArrayType array && isId(array.elementType())) {
      return column(frame, name).cast(DataTypes.createArrayType(DataTypes.LongType, array.containsNull())).as(name);
    }
    throw new IllegalArgumentException("column " + name + " is of type " + type.simpleString()
        + "; ids of a feature are a bigint or an array<bigint>, or smaller integers");
  }

  private static boolean isId(DataType type) {
    return type instanceof LongType || type instanceof IntegerType || type instanceof ShortType || type instanceof ByteType;
  }
}
