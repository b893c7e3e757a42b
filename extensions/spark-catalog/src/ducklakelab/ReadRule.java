package ducklakelab;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** Replaces reads of a lake by the plan of the session's DataFrame, then optimizes the whole again. */
final class ReadRule extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (WriteStrategy.isOfLake(plan) || plan instanceof Subquery) {
      return plan; // the transaction of a write plans its reads, and the query those of its subqueries
    }
    Replacing replacing = new Replacing(KeyedReads.chosen(plan));
    LogicalPlan found = (LogicalPlan) plan.transformUpWithSubqueries(replacing);
    if (replacing.session == null) {
      return plan;
    }
    return replacing.session.sessionState().optimizer().execute(found);
  }

  private static final class Replacing extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    private final Map<ExprId, KeyedReads.Keyed> keyed;
    private SparkSession session;

    Replacing(Map<ExprId, KeyedReads.Keyed> keyed) {
      this.keyed = keyed;
    }

    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LakeScan
          || plan instanceof Filter filter && filter.child() instanceof KeyedRows && filter.condition().deterministic();
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      if (!isDefinedAt(plan)) {
        return otherwise.apply(plan);
      }
      if ((LogicalPlan) plan instanceof Filter filter) {
        return (B) ((KeyedRows) filter.child()).where(filter.condition());
      }
      return (B) replaced((DataSourceV2ScanRelation) (LogicalPlan) plan);
    }

    private LogicalPlan replaced(DataSourceV2ScanRelation relation) {
      LakeScan scan = (LakeScan) relation.scan();
      for (Attribute column : CollectionConverters.asJava(relation.output())) {
        KeyedReads.Keyed read = keyed.get(column.exprId());
        if (read != null && read.own().size() > 1) {
          return parts(relation, scan, read, column);
        }
      }
      return renamed(scan.rows(), relation.output(), true);
    }

    private LogicalPlan parts(
        DataSourceV2ScanRelation relation, LakeScan scan, KeyedReads.Keyed read, Attribute column) {
      List<LogicalPlan> found = new ArrayList<>();
      scan.rows(read.key(), read.own()).forEach(rows -> found.add(renamed(rows, relation.output(), false)));
      List<Integer> numbers = read.own().stream().map(read.values()::indexOf).toList();
      Integer buckets = read.key().has("buckets") ? read.key().get("buckets").asInt() : null;
      KeyPartitioning partitioning = new KeyPartitioning(column, buckets, read.values());
      KeyedRows.Layout layout = new KeyedRows.Layout(relation.output(), partitioning, numbers, read.bytes());
      return new KeyedRows(CollectionConverters.asScala(found).toSeq(), layout);
    }

    /** Returns rows with the names of a relation, and on request with the ids of its columns. */
    private Project renamed(Dataset<?> rows, Seq<AttributeReference> output, boolean sameIds) {
      session = (SparkSession) rows.sparkSession();
      LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset<?>) rows).queryExecution().analyzed();
      List<NamedExpression> columns = new ArrayList<>();
      for (int i = 0; i < output.size(); i++) {
        AttributeReference wanted = output.apply(i);
        ExprId id = sameIds ? wanted.exprId() : NamedExpression.newExprId();
        Seq<String> none = CollectionConverters.asScala(List.<String>of()).toSeq();
        columns.add(new Alias(plan.output().apply(i), wanted.name(), id, none, Option.empty(), none));
      }
      return new Project(CollectionConverters.asScala(columns).toSeq(), plan);
    }
  }
}
