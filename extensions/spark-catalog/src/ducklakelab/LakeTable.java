package ducklakelab;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of a lake at a snapshot, or one of its metadata tables. */
class LakeTable
    implements SupportsRead, SupportsWrite, SupportsMetadataColumns, SupportsRowLevelOperations, TruncatableTable {
  final Bridge bridge;
  final JsonNode about;

  LakeTable(Bridge bridge, JsonNode about) {
    this.bridge = bridge;
    this.about = about;
  }

  /** The part of the description that the session finds the table by. */
  JsonNode token() {
    return about.get("token");
  }

  /** Whether this is a table of the lake itself, rather than a view or a table of metadata. */
  boolean isPlain() {
    return !token().has("metadata") && !token().has("view");
  }

  @Override
  public String name() {
    return about.get("name").asText();
  }

  @Override
  public StructType schema() {
    StructType found = new StructType();
    for (Column column : columns()) {
      found = found.add(column.name(), column.dataType());
    }
    return found;
  }

  @Override
  public Column[] columns() {
    List<Column> found = new ArrayList<>();
    for (JsonNode column : about.get("columns")) {
      String name = column.get("name").asText();
      DataType type = DataType.fromJson(column.get("type").asText());
      String comment = column.path("comment").textValue();
      String value = column.path("default").textValue();
      ColumnDefaultValue given = value == null ? null : new ColumnDefaultValue(value, new LiteralValue<>(null, type));
      found.add(
          given == null
              ? Column.create(name, type, true, comment, (String) null)
              : Column.create(name, type, true, comment, given, null));
    }
    return found.toArray(new Column[0]);
  }

  @Override
  public Transform[] partitioning() {
    List<Transform> found = new ArrayList<>();
    for (JsonNode key : about.get("partitioning")) {
      String name = key.get("transform").asText();
      Expression column = Expressions.column(quoted(key.get("column").asText()));
      if (name.equals("identity")) {
        found.add(Expressions.identity(quoted(key.get("column").asText())));
      } else if (name.equals("bucket")) {
        found.add(Expressions.bucket(key.get("buckets").asInt(), quoted(key.get("column").asText())));
      } else {
        found.add(Expressions.apply(name, column));
      }
    }
    return found.toArray(new Transform[0]);
  }

  private static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  @Override
  public Map<String, String> properties() {
    return LakeCatalog.texts(about.get("properties"));
  }

  @Override
  public Set<TableCapability> capabilities() {
    // of tables that take no writes, too: `check` says why they do not
    return EnumSet.of(
        TableCapability.BATCH_READ,
        TableCapability.BATCH_WRITE,
        TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER,
        TableCapability.OVERWRITE_DYNAMIC,
        TableCapability.MICRO_BATCH_READ,
        TableCapability.STREAMING_WRITE);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    List<MetadataColumn> found = new ArrayList<>();
    about.get("metadata").forEach(name -> found.add(new Virtual(name.asText())));
    return found.toArray(new MetadataColumn[0]);
  }

  /** A virtual column. Only the row id is never NULL: inlined rows have no file. */
  private record Virtual(String name) implements MetadataColumn {
    @Override
    public DataType dataType() {
      return org.apache.spark.sql.types.DataTypes.LongType;
    }

    @Override
    public boolean isNullable() {
      return !name.equals(RowChange.ROW_ID);
    }
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new LakeScan.Builder(this, options);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    check();
    return new LakeWrite.Builder(this, info);
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    check();
    if (about.get("metadata").size() < 4) {
      throw new UnsupportedOperationException(
          "Rows of " + name() + " cannot be changed here: a column has the name of a virtual column; rename it.");
    }
    return () -> new RowChange(this, info.command());
  }

  @Override
  public boolean truncateTable() {
    check();
    return bridge.ask("truncate table", Bridge.object().set("table", token())).asBoolean();
  }

  private void check() {
    if (!about.get("writable").asBoolean()) {
      throw new UnsupportedOperationException(
          "Nothing can be written to " + name() + ": it is a metadata table, or is read only.");
    }
  }

  // tables of one snapshot are one table to Spark's cache, and others are not

  @Override
  public boolean equals(Object other) {
    return other instanceof LakeTable table && table.bridge == bridge && table.token().equals(token());
  }

  @Override
  public int hashCode() {
    return token().hashCode();
  }

  @Override
  public String toString() {
    return name();
  }

  /** A table that a statement creates together with its rows. */
  static final class Staged extends LakeTable implements StagedTable {
    Staged(Bridge bridge, JsonNode about) {
      super(bridge, about);
    }

    @Override
    public void commitStagedChanges() {
      bridge.ask("commit staged", Bridge.object().set("table", token()));
    }

    @Override
    public CustomTaskMetric[] reportDriverMetrics() {
      return new CustomTaskMetric[0];
    }

    @Override
    public void abortStagedChanges() {
      bridge.ask("abort staged", Bridge.object().set("table", token()));
    }
  }
}
