package ducklakelab;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Finds joins of lake tables on columns by whose buckets both are partitioned, and reads such tables by buckets. */
final class Bucketed {
  /** A task reads a bucket, and the driver plans each; more of them are joined as other tables are. */
  private static final int MOST = 256;

  /** A column of a read by whose buckets its table is partitioned. */
  private record Key(DataSourceV2ScanRelation relation, AttributeReference column, int count, String form) {
    boolean fits(Key other) {
      return other.count == count && other.form.equals(form) && other.column.dataType().equals(column.dataType());
    }

    LakeScan scan() {
      return (LakeScan) relation.scan();
    }
  }

  private final Map<ExprId, Key> columns = new HashMap<>();
  private final Map<DataSourceV2ScanRelation, Key> chosen = new IdentityHashMap<>();
  private final long least;
  private SparkSession session;

  private Bucketed(long least) {
    this.least = least;
  }

  /** Returns which reads of a plan are by buckets: of tables that are too large to be broadcast. */
  static Bucketed of(LogicalPlan plan) {
    Bucketed found = new Bucketed(SQLConf.get().autoBroadcastJoinThreshold());
    found.collect(plan);
    if (!found.columns.isEmpty()) {
      found.choose(plan);
    }
    return found;
  }

  private void collect(LogicalPlan plan) {
    CollectionConverters.asJava(plan.children()).forEach(this::collect);
    if (plan instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LakeScan scan) {
      for (JsonNode key : scan.table().about.get("partitioning")) {
        for (Attribute column : CollectionConverters.asJava(relation.output())) {
          if (key.has("form") && column.name().equals(key.get("column").asText()) && scan.aggregates() == null) {
            int count = key.get("buckets").asInt();
            AttributeReference reference = (AttributeReference) column;
            if (count > 1 && count <= MOST) {
              columns.put(column.exprId(), new Key(relation, reference, count, key.get("form").asText()));
            }
          }
        }
      }
    } else if (plan instanceof Project project) {
      for (Object given : CollectionConverters.asJava(project.projectList())) {
        if (given instanceof Alias alias && alias.child() instanceof Attribute of && columns.containsKey(of.exprId())) {
          columns.put(alias.exprId(), columns.get(of.exprId()));
        }
      }
    }
  }

  private void choose(LogicalPlan plan) {
    CollectionConverters.asJava(plan.children()).forEach(this::choose);
    if (plan instanceof Join join && join.condition().isDefined()) {
      choose(join.condition().get());
    }
  }

  private void choose(Expression condition) {
    if (condition instanceof And and) {
      choose(and.left());
      choose(and.right());
    } else if (condition instanceof EqualTo equal
        && equal.left() instanceof Attribute left
        && equal.right() instanceof Attribute right) {
      Key one = columns.get(left.exprId());
      Key other = columns.get(right.exprId());
      if (one != null && other != null && one.fits(other) && isPossible(one) && isPossible(other)) {
        chosen.putIfAbsent(one.relation(), one);
        chosen.putIfAbsent(other.relation(), other);
      }
    }
  }

  private boolean isPossible(Key key) {
    var request = key.scan().request().put("least", least).put("bucketed", key.column().name());
    return key.scan().table().bridge.ask("bucketed", request).asBoolean();
  }

  /** Returns the session of the last read by buckets. */
  SparkSession session() {
    return session;
  }

  /** Returns the plan of a read by buckets; null if it is read as others are. */
  LogicalPlan plan(DataSourceV2ScanRelation relation) {
    Key key = chosen.get(relation);
    if (key == null) {
      return null;
    }
    List<RDD<InternalRow>> parts = new ArrayList<>();
    for (int bucket = 0; bucket < key.count(); bucket++) {
      var request = key.scan().request().put("bucketed", key.column().name()).put("bucket", bucket);
      Dataset<?> rows = (Dataset<?>) key.scan().table().bridge.rows("scan", request);
      session = rows.sparkSession();
      parts.add(one(rows.queryExecution().toRdd(), session));
    }
    RDD<InternalRow> whole =
        session.sparkContext().union(CollectionConverters.asScala(parts).toSeq(), parts.get(0).elementClassTag());
    return relation(relation.output(), whole, new Buckets(key.column(), key.count(), key.form()), session);
  }

  /** Returns rows in one partition; those of a bucket without files have none. */
  private static RDD<InternalRow> one(RDD<InternalRow> rows, SparkSession session) {
    if (rows.getNumPartitions() == 0) {
      return JavaSparkContext.fromSparkContext(session.sparkContext()).parallelize(List.<InternalRow>of(), 1).rdd();
    }
    return rows.coalesce(1, false, Option.empty(), null);
  }

  /** Makes the plan of rows that are there; later versions of Spark have further parameters, which are flags. */
  private static LogicalPlan relation(
      Seq<AttributeReference> output, RDD<InternalRow> rows, Buckets buckets, SparkSession session) {
    Constructor<?> constructor = LogicalRDD.class.getConstructors()[0];
    List<Object> arguments = new ArrayList<>(List.of(output, rows, buckets));
    arguments.add(CollectionConverters.asScala(List.of()).toSeq());
    arguments.add(false);
    arguments.add(Option.<SparkDataStream>empty());
    arguments.add(session);
    arguments.add(Option.<Statistics>empty());
    arguments.add(Option.empty());
    while (arguments.size() < constructor.getParameterCount()) {
      arguments.add(false);
    }
    try {
      return (LogicalPlan) constructor.newInstance(arguments.toArray());
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
