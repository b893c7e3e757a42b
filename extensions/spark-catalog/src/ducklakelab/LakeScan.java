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
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The columns and conditions of a read. `ReadRule` replaces it; it reads nothing by itself. */
record LakeScan(
    LakeTable table,
    StructType readSchema,
    List<ObjectNode> conditions,
    CaseInsensitiveStringMap options,
    ArrayNode aggregates)
    implements Scan {

  /** Returns the rows, with the columns of `readSchema`. */
  Dataset<Row> rows() {
    ObjectNode request = request();
    if (aggregates != null) {
      request.set("aggregates", aggregates);
      return table.bridge.rows("aggregate", request);
    }
    return table.bridge.rows("scan", request);
  }

  /** Returns the rows of each of some values of a partition key. */
  List<Dataset<Row>> rows(ObjectNode key, Iterable<String> values) {
    ObjectNode request = request();
    request.set("key", key);
    request.set("values", KeyedReads.texts(values));
    return table.bridge.frames("keyed scan", request);
  }

  /** Returns a request that names the table, the columns and the conditions. */
  ObjectNode request() {
    ObjectNode request = Bridge.object();
    request.set("table", table.token());
    request.set("columns", Bridge.texts(readSchema.fieldNames()));
    ArrayNode list = request.putArray("conditions");
    conditions.forEach(list::add);
    request.set("options", Bridge.tree(options.asCaseSensitiveMap()));
    return request;
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

  static final class Builder
      implements ScanBuilder,
          SupportsPushDownV2Filters,
          SupportsPushDownRequiredColumns,
          SupportsPushDownAggregates {
    private final LakeTable table;
    private final List<ObjectNode> conditions = new ArrayList<>();
    private final CaseInsensitiveStringMap options;
    private StructType schema;
    private ArrayNode aggregates;

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

    /** Takes counts and extremes of a whole table, which the session often knows without its files. */
    @Override
    public boolean pushAggregation(Aggregation aggregation) {
      ArrayNode found = Bridge.array();
      StructType made = new StructType();
      if (aggregation.groupByExpressions().length > 0 || !conditions.isEmpty() || !options.isEmpty() || !table.isPlain()) {
        return false;
      }
      for (AggregateFunc function : aggregation.aggregateExpressions()) {
        ObjectNode described = described(function);
        if (described == null) {
          return false;
        }
        String column = described.path("column").textValue();
        boolean counts = described.get("function").asText().equals("count");
        DataType type = counts ? DataTypes.LongType : table.schema().apply(column).dataType();
        made = made.add("a" + found.size(), type);
        found.add(described);
      }
      schema = made;
      aggregates = found;
      return true;
    }

    @Override
    public boolean supportCompletePushDown(Aggregation aggregation) {
      return true;
    }

    private ObjectNode described(AggregateFunc function) {
      ObjectNode found = Bridge.object();
      if (function instanceof CountStar) {
        return found.put("function", "count");
      }
      Expression column = null;
      if (function instanceof Count count && !count.isDistinct()) {
        column = count.column();
        found.put("function", "count");
      } else if (function instanceof Min min) {
        column = min.column();
        found.put("function", "min");
      } else if (function instanceof Max max) {
        column = max.column();
        found.put("function", "max");
      }
      if (!(column instanceof NamedReference reference) || reference.fieldNames().length != 1) {
        return null;
      }
      String name = reference.fieldNames()[0];
      return List.of(table.schema().fieldNames()).contains(name) ? found.put("column", name) : null;
    }

    @Override
    public void pruneColumns(StructType required) {
      schema = required;
    }

    @Override
    public Scan build() {
      return new LakeScan(table, schema, conditions, options, aggregates);
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
