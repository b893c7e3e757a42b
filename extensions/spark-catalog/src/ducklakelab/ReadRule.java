package ducklakelab;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.Dataset;
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
    if (WriteStrategy.isOfLake(plan)) {
      return plan; // the transaction of the write plans its reads
    }
    Replacing replacing = new Replacing();
    LogicalPlan found = (LogicalPlan) plan.transformUpWithSubqueries(replacing);
    if (replacing.session == null) {
      return plan;
    }
    return replacing.session.sessionState().optimizer().execute(found);
  }

  private static final class Replacing extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    private SparkSession session;

    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LakeScan;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      return isDefinedAt(plan) ? (B) replaced((DataSourceV2ScanRelation) plan) : otherwise.apply(plan);
    }

    private LogicalPlan replaced(DataSourceV2ScanRelation relation) {
      Dataset<?> rows = (Dataset<?>) ((LakeScan) relation.scan()).rows();
      session = rows.sparkSession();
      LogicalPlan plan = rows.queryExecution().analyzed();
      List<NamedExpression> columns = new ArrayList<>();
      for (int i = 0; i < relation.output().size(); i++) {
        AttributeReference wanted = relation.output().apply(i);
        Seq<String> none = CollectionConverters.asScala(List.<String>of()).toSeq();
        columns.add(
            new Alias(plan.output().apply(i), wanted.name(), wanted.exprId(), none, Option.empty(), none));
      }
      return new Project(CollectionConverters.asScala(columns).toSeq(), plan);
    }
  }
}
