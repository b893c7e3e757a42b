package ducklakelab;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.util.RowDeltaUtils;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.command.ExecutedCommandExec;
import org.apache.spark.sql.execution.datasources.InsertIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Plans writes to a lake: the session gets the rows as a DataFrame, and commits them. */
final class WriteStrategy extends SparkStrategy {

  /** Returns the table of a lake that a plan writes to, or null. */
  private static LakeTable target(LogicalPlan plan) {
    if (!(plan instanceof V2WriteCommand command)) {
      return null;
    }
    NamedRelation relation = plan instanceof WriteDelta delta ? delta.originalTable() : command.table();
    return relation instanceof DataSourceV2Relation of && of.table() instanceof LakeTable table ? table : null;
  }

  static boolean isOfLake(LogicalPlan plan) {
    return target(plan) != null || plan instanceof DeleteFromTable;
  }

  @Override
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    LakeTable table = target(plan);
    if (table == null) {
      return CollectionConverters.asScala(List.<SparkPlan>of()).toSeq();
    }
    V2WriteCommand command = (V2WriteCommand) plan;
    LogicalPlan query = command.query();
    ObjectNode request = Bridge.object();
    request.set("table", table.token());
    LogicalPlan replaced = null;
    // from Spark 4.2 on, a MERGE that only inserts has a node of its own
    if (plan instanceof AppendData || plan.nodeName().equals("InsertOnlyMerge")) {
      request.put("mode", "append");
    } else if (plan instanceof OverwritePartitionsDynamic) {
      request.put("mode", "overwrite partitions");
    } else if (plan instanceof OverwriteByExpression overwrite) {
      boolean whole = overwrite.deleteExpr().equals(Literal.TrueLiteral());
      request.put("mode", whole ? "overwrite" : "overwrite where");
      replaced = whole ? null : matching((DataSourceV2Relation) command.table(), overwrite.deleteExpr());
    } else if (plan instanceof WriteDelta delta) {
      request.put("mode", "change");
      describe(request, delta);
    } else {
      throw new UnsupportedOperationException(plan.nodeName() + " is not supported on tables of a lake.");
    }
    request.set("options", Bridge.tree(options(plan)));
    SparkPlan found =
        new ExecutedCommandExec(
            new InsertIntoDataSourceCommand(
                LogicalRelation$.MODULE$.apply(new LakeRows(table, request, replaced), false), planned(query), false));
    return CollectionConverters.asScala(List.of(found)).toSeq();
  }

  /** Returns a plan that Spark analyzes no more: the optimizer has made forms that the analyzer does not take. */
  static LogicalPlan planned(LogicalPlan query) {
    LogicalPlan copy = (LogicalPlan) query.clone();
    copy.setAnalyzed();
    return copy;
  }

  private static Map<String, String> options(LogicalPlan plan) {
    scala.collection.immutable.Map<String, String> found =
        plan instanceof AppendData append
            ? append.writeOptions()
            : plan instanceof OverwriteByExpression overwrite
                ? overwrite.writeOptions()
                : plan instanceof OverwritePartitionsDynamic dynamic ? dynamic.writeOptions() : null;
    return found == null ? Map.of() : CollectionConverters.asJava(found);
  }

  private static LogicalPlan matching(DataSourceV2Relation relation, Expression condition) {
    return new Filter(condition, relation.withMetadataColumns());
  }

  private static void describe(ObjectNode request, WriteDelta delta) {
    ObjectNode operations = request.putObject("operations");
    operations.put("delete", RowDeltaUtils.DELETE_OPERATION());
    operations.put("update", RowDeltaUtils.UPDATE_OPERATION());
    operations.put("insert", RowDeltaUtils.INSERT_OPERATION());
    places(request.putArray("row"), delta.projections().rowProjection());
    places(request.putArray("row_id"), Option.apply(delta.projections().rowIdProjection()));
    places(request.putArray("place"), delta.projections().metadataProjection());
    RowChange operation = (RowChange) delta.operation();
    request.put("command", operation.command().toString());
  }

  private static void places(ArrayNode list, Option<ProjectingInternalRow> projection) {
    if (projection.isDefined()) {
      CollectionConverters.asJava(projection.get().colOrdinals()).forEach(place -> list.add((Integer) (Object) place));
    }
  }
}
