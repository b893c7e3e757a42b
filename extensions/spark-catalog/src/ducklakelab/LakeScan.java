package ducklakelab;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The columns and conditions of a read. `ReadRule` replaces it; it reads nothing by itself. */
record LakeScan(
    LakeTable table, StructType readSchema, List<ObjectNode> conditions, CaseInsensitiveStringMap options)
    implements Scan {

  /** Returns the rows, with the columns of `readSchema`. */
  Dataset<Row> rows() {
    ObjectNode request = Bridge.object();
    request.set("table", table.token());
    request.set("columns", Bridge.texts(readSchema.fieldNames()));
    ArrayNode list = request.putArray("conditions");
    conditions.forEach(list::add);
    request.set("options", Bridge.tree(options.asCaseSensitiveMap()));
    return table.bridge.rows("scan", request);
  }

  @Override
  public String description() {
    return table.name() + " " + conditions;
  }

  @Override
  public Batch toBatch() {
    throw new UnsupportedOperationException(
        "This SparkSession does not read lakes yet; call dl.spark_catalog with it first.");
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return LakeStream.read(table, options, checkpoint);
  }

  static final class Builder implements ScanBuilder, SupportsPushDownV2Filters, SupportsPushDownRequiredColumns {
    private final LakeTable table;
    private final List<ObjectNode> conditions = new ArrayList<>();
    private final CaseInsensitiveStringMap options;
    private StructType schema;

    Builder(LakeTable table, CaseInsensitiveStringMap options) {
      this.table = table;
      this.options = options;
      this.schema = table.schema();
    }

    @Override
    public Predicate[] pushPredicates(Predicate[] predicates) {
      for (Predicate predicate : predicates) {
        conditions.add(describe(predicate));
      }
      return predicates; // files are pruned by them, rows are not
    }

    @Override
    public Predicate[] pushedPredicates() {
      return new Predicate[0];
    }

    @Override
    public void pruneColumns(StructType required) {
      schema = required;
    }

    @Override
    public Scan build() {
      return new LakeScan(table, schema, conditions, options);
    }

    private static ObjectNode describe(Expression expression) {
      ObjectNode found = Bridge.object();
      if (expression instanceof NamedReference reference) {
        found.set("column", Bridge.texts(reference.fieldNames()));
      } else if (expression instanceof Literal<?> literal) {
        found.put("type", literal.dataType().typeName());
        found.put("value", literal.value() == null ? null : literal.value().toString());
      } else if (expression instanceof Predicate predicate) {
        found.put("operator", predicate.name());
        ArrayNode children = found.putArray("children");
        for (Expression child : predicate.children()) {
          children.add(describe(child));
        }
      }
      return found;
    }
  }
}
