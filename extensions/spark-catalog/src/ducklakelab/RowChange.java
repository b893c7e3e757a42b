package ducklakelab;

import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** DELETE, UPDATE or MERGE: Spark makes a plan of changed rows, each with its row id and place. */
record RowChange(LakeTable table, RowLevelOperation.Command command) implements SupportsDelta {
  static final String ROW_ID = "_ducklake_row_id";
  static final String[] PLACE = {"_ducklake_file_id", "_ducklake_position"};

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new LakeScan.Builder(table, options);
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new LakeWrite.DeltaBuilder();
  }

  @Override
  public NamedReference[] rowId() {
    return new NamedReference[] {Expressions.column(ROW_ID)};
  }

  @Override
  public NamedReference[] requiredMetadataAttributes() {
    return new NamedReference[] {Expressions.column(PLACE[0]), Expressions.column(PLACE[1])};
  }
}
